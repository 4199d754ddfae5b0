"""A real pandod process under a real pando-keeper."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually
from pando_kv import Client, DeadlineError, SessionLostError, UnavailableError
from pandod_process import PAGE_TOKENS, Pandod, binary


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

    _starts = 0  # that there were before the last kill

    def _command(self) -> list[Path | str]:
        return [keeper(), *super()._command()]

    @property
    def server_pid(self) -> int:
        eventually(lambda: bool(children_of(self.pid)))
        [child] = children_of(self.pid)
        return child

    def kill_server(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Its keeper starts it again."""
        killed = self.server_pid
        self._starts = self._started()
        os.kill(killed, by)
        eventually(lambda: killed not in children_of(self.pid))

    def wait_serving(self) -> None:
        self._wait_serving()

    def _wait_serving(self) -> None:
        """Until the one after the last kill has said all that it says of its start."""
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


def call_in_another_epoch(client: Client, epoch: int) -> int:
    """Calls until one is answered by another pandod than that of `epoch`."""

    def is_answered() -> bool:
        try:
            client.match_prefix(list(range(PAGE_TOKENS)), lock=True).lock.release()
            return client.epoch != epoch
        except (SessionLostError, UnavailableError, DeadlineError):
            return False  # it is away, or the session is lost

    eventually(is_answered)
    return client.epoch


def config_of(folder: Path, **options: object) -> Path:
    """A configuration that may be another one in the next life."""
    path = folder / "pandod.yaml"
    path.write_text("".join(f"{name}: {value}\n" for name, value in options.items()))
    return path
