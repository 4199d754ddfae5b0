"""A real pandod process under a real pando-keeper."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually
from pando_kv import (
    Client,
    DeadlineError,
    KvLayout,
    SessionLostError,
    UnavailableError,
)
from pandod_process import PAGE_TOKENS, Pandod, binary

# The layout that a worker gives to an open pool.
LAYOUT = KvLayout.make(
    capacity_pages=0,
    layers=2,
    heads=2,
    head_size=8,
    dtype="float32",
    page_tokens=PAGE_TOKENS,
)


def keeper() -> Path:
    return binary().with_name("pando-keeper")


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def memory_files(pid: int) -> dict[int, int]:
    """Returns the files of KV memory that a process has open.

    The result has, by inode, the bytes that each file takes up by now.
    """
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd).startswith("/memfd:pando-kv"):
                info = os.stat(fd)
                found[info.st_ino] = info.st_blocks * 512
        except FileNotFoundError:
            # The process closed the descriptor meanwhile.
            continue
    return found


class KeptPandod(Pandod):
    """A pandod under a keeper. `pid` is the keeper's; kill() ends both processes."""

    # In seconds; a test may set it before the start.
    watchdog = 5
    # The number of starts before the last kill.
    _starts = 0

    def _command(self) -> list[Path | str]:
        return [keeper(), "--watchdog", str(self.watchdog), *super()._command()]

    @property
    def server_pid(self) -> int:
        eventually(lambda: bool(children_of(self.pid)))
        [child] = children_of(self.pid)
        return child

    def kill_server(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Ends pandod with the signal; its keeper starts the next one."""
        killed = self.server_pid
        self._starts = self._started()
        os.kill(killed, by)
        eventually(lambda: killed not in children_of(self.pid))

    def wait_serving(self) -> None:
        self._wait_serving()

    def _wait_serving(self) -> None:
        """Waits until the pandod after the last kill serves and has logged so."""
        super()._wait_serving()
        eventually(lambda: self._started() > self._starts)

    def _started(self) -> int:
        return self.log().count("pandod serves")


@contextmanager
def kept(folder: Path, **options: object) -> Iterator[KeptPandod]:
    server = KeptPandod(folder, **({"drain_timeout": "0s"} | options))
    server.start()
    try:
        yield server
    finally:
        server.close_in_order()


def call_until_answered(client: Client) -> None:
    """Calls until pandod answers, with the same session or with another one."""

    def is_answered() -> bool:
        try:
            client.match_prefix(list(range(PAGE_TOKENS)), lock=True).lock.release()
            return True
        except (SessionLostError, UnavailableError, DeadlineError):
            # pandod is away, or the session is lost.
            return False

    eventually(is_answered)


def config_of(folder: Path, **options: object) -> Path:
    """Writes a configuration file, which a test may change before the next start."""
    path = folder / "pandod.yaml"
    path.write_text("".join(f"{name}: {value}\n" for name, value in options.items()))
    return path
