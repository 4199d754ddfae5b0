"""mini-SGLang's server over Pando: `python3 -m pando_kv.minisgl.serve ARGUMENTS`.

The server spawns its schedulers as processes. Each of them imports this module as well,
so `use_pando()` runs in it before it makes its pool.
"""

from pando_kv.minisgl import use_pando

use_pando()

if __name__ == "__main__":
    from minisgl.server import launch_server

    launch_server()
