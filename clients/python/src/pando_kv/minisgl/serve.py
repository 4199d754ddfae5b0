"""mini-SGLang's server, on Pando: `python3 -m pando_kv.minisgl.serve ARGUMENTS`.

Its schedulers are processes that are spawned: they import this module, too, and so
have Pando in place before they make anything.
"""

from pando_kv.minisgl import use_pando

use_pando()

if __name__ == "__main__":
    from minisgl.server import launch_server

    launch_server()
