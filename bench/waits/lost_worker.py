"""Reserves pages of the pool and dies. A child process still maps the pages, so they
wait in quarantine until pandod gives them up. The child ends when its standard input
ends.

usage: python lost_worker.py ADDRESS PAGES
"""

import os
import sys

from pando_kv import Client

client = Client(sys.argv[1], name="one that is lost")
pool = client.attach_pool()
client.allocate_pages(int(sys.argv[2]))
if os.fork() == 0:
    os.read(0, 1)
os._exit(0)
