"""A real pandod process under a real pando-keeper."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually
from pandod_process import Pandod, binary


def keeper() -> Path:
    return binary().with_name("pando-keeper")


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def memory_files(pid: int) -> dict[int, int]:
    """The KV memory that a process has descriptors of: the bytes that each file takes
    by now, by its inode."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd).startswith("/memfd:pando-kv"):
                info = os.stat(fd)
                found[info.st_ino] = info.st_blocks * 512
        except FileNotFoundError:
            continue  # closed meanwhile
    return found


class KeptPandod(Pandod):
    """`pid` is the keeper's; kill() ends both."""

    def _command(self) -> list[Path | str]:
        return [keeper(), *super()._command()]

    @property
    def server_pid(self) -> int:
        eventually(lambda: bool(children_of(self.pid)))
        [child] = children_of(self.pid)
        return child

    def kill_server(self) -> None:
        """Its keeper starts it again."""
        killed = self.server_pid
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: killed not in children_of(self.pid))

    def wait_serving(self) -> None:
        self._wait_serving()


@contextmanager
def kept(folder: Path, **options: object) -> Iterator[KeptPandod]:
    server = KeptPandod(folder, **({"drain_timeout": "0s"} | options))
    server.start()
    try:
        yield server
    finally:
        server.close_in_order()
