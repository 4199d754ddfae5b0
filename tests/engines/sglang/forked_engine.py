"""A program that has a zygote fork an engine (zygote.py), and ends when it ends.

usage: forked_engine.py '{"zygote": SOCKET, "arguments": ..., "environment": {...}}'
"""

import json
import socket
import sys


def main() -> int:
    asked = json.loads(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as zygote:
        zygote.connect(asked.pop("zygote"))
        line = json.dumps(asked).encode()
        socket.send_fds(zygote, [line], [0, 1, 2])
        return int(zygote.makefile().readline() or 1)


if __name__ == "__main__":
    sys.exit(main())
