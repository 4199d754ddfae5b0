"""A pandod that gets descriptors as from a keeper, and the store of such a keeper."""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pandod_process import Pandod

# The program becomes a pandod that gets the descriptors of its first argument, an
# expression for a dictionary of descriptors by name.
HANDING_DOWN = """
import fcntl, os, socket, sys

def memory(size=0):
    fd = os.memfd_create("pando-kv", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, 7)
    return fd

def listening_at(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener.detach()

given = eval(sys.argv[1])
beyond = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in given.values()]
for i, fd in enumerate(beyond):
    os.dup2(fd, 3 + i)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(given))
os.environ["LISTEN_FDNAMES"] = ":".join(given)
os.execv(sys.argv[2], sys.argv[2:])
"""


class HandedDown(Pandod):
    """A pandod that starts with the descriptors of `given`, an expression in Python."""

    def __init__(self, folder: Path, given: str, **options: object) -> None:
        super().__init__(folder, **({"drain_timeout": "0s"} | options))
        self._given = given

    def _command(self) -> list[Path | str]:
        return [sys.executable, "-c", HANDING_DOWN, self._given, *super()._command()]


class DescriptorStore:
    """A keeper's store of the descriptors that pandods send, as they do to systemd.

    The store keeps a descriptor only if `names` has its name, and closes all others.
    Each kept descriptor must be one of memory. A thread receives the messages until
    close().
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        self._names = names
        self._kept: dict[str, int] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def given(self) -> str:
        """Returns all kept descriptors as an expression for HandedDown."""
        mine = f"/proc/{os.getpid()}/fd"
        opened = (
            f"'{name}': os.open('{mine}/{fd}', os.O_RDWR)"
            for name, fd in self._kept.items()
        )
        return "{" + ", ".join(opened) + "}"

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(self.path))
        self._thread.join()
        self._socket.close()
        for fd in self._kept.values():
            os.close(fd)

    def _receive(self) -> None:
        while True:
            message, fds, _, _ = socket.recv_fds(self._socket, 4096, 8)
            if not message:
                return
            fields = dict(line.split("=", 1) for line in message.decode().splitlines())
            name = fields.get("FDNAME")
            if fds and name in self._names:
                self._kept[name] = fds.pop()
            for fd in fds:
                os.close(fd)


@contextmanager
def storing(path: Path, *names: str) -> Iterator[DescriptorStore]:
    store = DescriptorStore(path, names)
    with contextlib.closing(store):
        yield store
