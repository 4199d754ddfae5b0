"""One process of an engine reserves pages that other processes write."""

import os
import subprocess
import sys

import numpy as np
import pytest
from eventually import eventually
from pando_kv import Client, Operator, SessionLostError
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod

# This program reserves pages and prints its session; the pages outlive it.
SCHEDULER = """
import sys
from pando_kv import Client
client = Client(sys.argv[1], name="scheduler")
client.allocate_pages(5)
print(client.session_id, flush=True)
sys.stdin.read()
"""
# This program writes pages of the session that its argument names.
WRITER = """
import sys
from pando_kv import Client
client = Client(sys.argv[1], name="writer")
pool = client.attach_pool()
client.link_session(int(sys.argv[2]))
print("linked", flush=True)
sys.stdin.read()
"""


class Process:
    def __init__(self, program, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = self._process.stdout.readline().strip()
        assert self.said, "it ended"

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path, session_grace="100ms", quarantine="1h")
    server.start()
    yield server
    server.close_in_order()


def pages(pandod):
    with Operator(pandod.address) as operator:
        return operator.stats().pages


def test_pages_are_kept_until_who_writes_them_is_gone(pandod):
    scheduler = Process(SCHEDULER, pandod.address)
    writers = [Process(WRITER, pandod.address, scheduler.said) for _ in range(2)]
    scheduler.kill()
    eventually(lambda: pages(pandod).quarantined == 5)
    writers[0].kill()
    writers[1].kill()
    eventually(lambda: pages(pandod).free == POOL_PAGES - 1)


def test_one_writer_that_lives_keeps_them(pandod):
    scheduler = Process(SCHEDULER, pandod.address)
    writers = [Process(WRITER, pandod.address, scheduler.said) for _ in range(2)]
    writers[0].kill()
    scheduler.kill()
    eventually(lambda: pages(pandod).quarantined == 5)
    with Client(pandod.address) as other:
        # pandod has long seen the death of the first writer.
        tokens = np.arange(PAGE_TOKENS, dtype=np.uint32)
        other.insert(tokens, other.allocate_pages(1))
        assert pages(pandod).quarantined == 5
    writers[1].kill()
    eventually(lambda: pages(pandod).quarantined == 0)


@pytest.mark.parametrize("closed", ["link", "client"])
def test_what_is_closed_keeps_nothing(pandod, closed):
    scheduler = Process(SCHEDULER, pandod.address)
    writer = Process(WRITER, pandod.address, scheduler.said)
    linked = Client(pandod.address, name="linked")
    link = linked.link_session(int(scheduler.said))
    scheduler.kill()
    with Operator(pandod.address) as operator:

        def writers():
            lost = operator.quarantine().items
            return {pid for session in lost for pid in session.living_pids}

        eventually(lambda: writers() == {writer.pid, os.getpid()})
        {"link": link, "client": linked}[closed].close()
        # One look at all processes misses the closed one and still finds the other.
        eventually(lambda: writers() == {writer.pid})
        assert operator.stats().pages.quarantined == 5
    linked.close()
    writer.kill()
    eventually(lambda: pages(pandod).quarantined == 0)


def test_without_a_link_pages_of_one_that_mapped_nothing_are_free_at_once(pandod):
    scheduler = Process(SCHEDULER, pandod.address)
    scheduler.kill()
    eventually(lambda: pages(pandod).free == POOL_PAGES - 1)


def test_a_session_that_is_over_cannot_be_linked_to(pandod):
    with Client(pandod.address) as client, pytest.raises(SessionLostError):
        client.link_session(1234)
