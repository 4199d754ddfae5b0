"""pandod reports to systemd, which a real socket of the test replaces."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventually import eventually
from pando_kv import Client
from pandod_process import PAGE_TOKENS, Pandod, binary, clean_environment
from worker_process import WorkerProcess

TOKENS = list(range(2 * PAGE_TOKENS))
WATCHDOG_SECONDS = 1
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
WALL = 0x40000000


class Manager:
    """A socket that receives what a service tells its manager."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))

    def next(self, timeout: float = 30) -> dict[str, str]:
        """Returns the next message's assignments; skips stores of descriptors."""
        self._socket.settimeout(timeout)
        while True:
            text = self._socket.recv(4096).decode()
            message = dict(line.split("=", 1) for line in text.splitlines())
            if "FDSTORE" not in message:
                return message

    def until(self, name: str) -> dict[str, str]:
        """Returns the next message that assigns `name`."""
        while name not in (message := self.next()):
            pass
        return message

    def silent_for(self, seconds: float) -> bool:
        """Returns whether no message comes for so long, except one in transit."""
        with contextlib.suppress(TimeoutError):
            self.next(seconds)
            self.next(seconds)
            return False
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with contextlib.closing(Manager(tmp_path)) as manager:
        yield manager


@pytest.fixture
def start(tmp_path: Path, manager: Manager) -> Iterator[Callable[..., Pandod]]:
    with contextlib.ExitStack() as stack:

        def start_one(environment: dict[str, str], **options: object) -> Pandod:
            pandod = Pandod(tmp_path, **options)
            stack.callback(pandod.close_in_order)
            pandod.start(NOTIFY_SOCKET=str(manager.path), **environment)
            return pandod

        yield start_one


def test_it_is_ready_once_the_sockets_accept(tmp_path, manager):
    path = tmp_path / "pando.sock"
    process = subprocess.Popen(
        [binary(), "--socket", path, "--http=", "--pool-pages=2"],
        env=clean_environment() | {"NOTIFY_SOCKET": str(manager.path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert manager.next()["READY"] == "1"
        for name in ("pando.sock", "memory.sock"):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(tmp_path / name))
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_one_that_cannot_start_is_never_ready(tmp_path, manager):
    ended = subprocess.run(
        [binary(), "--socket", tmp_path / "absent" / "pando.sock", "--http="],
        env=clean_environment() | {"NOTIFY_SOCKET": str(manager.path)},
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 1
    with pytest.raises(BlockingIOError):
        manager.next(0)


def test_a_drain_is_told_when_it_begins(start, manager):
    pandod = start({}, drain_timeout="1h")
    with Client(pandod.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        pandod.terminate()
        assert manager.until("STOPPING")["STATUS"] == "draining"
        assert pandod.running
        lock.release()
        assert pandod.wait() == 0


@pytest.mark.parametrize("text", ["", "layers: nonsense\n"])
def test_a_reload_is_told_with_its_time_and_its_end(start, manager, tmp_path, text):
    config = tmp_path / "pandod.yaml"
    config.write_text("")
    pandod = start({}, config=config, layers=None, drain_timeout="0s")
    assert manager.next()["READY"] == "1"
    config.write_text(text)
    before = time.monotonic_ns() // 1000
    os.kill(pandod.pid, signal.SIGHUP)
    reloading = manager.next()
    assert reloading["RELOADING"] == "1"
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert manager.next() == {"READY": "1"}


def watched(start: Callable[..., Pandod], **options: object) -> Pandod:
    return start({"WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1_000_000)}, **options)


def test_there_are_signs_of_life_also_in_a_drain(start, manager):
    pandod = watched(start, drain_timeout="1h")
    manager.until("WATCHDOG")
    with Client(pandod.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        pandod.terminate()
        manager.until("STOPPING")
        manager.until("WATCHDOG")
        lock.release()
        assert pandod.wait() == 0


def test_no_watchdog_no_signs_of_life(start, manager):
    pandod = start({}, drain_timeout="0s")
    assert manager.next()["READY"] == "1"
    # This log line shows that the polling thread has run since the start.
    with WorkerProcess(pandod.address) as worker:
        worker.do("attach")
        worker.kill()
        eventually(lambda: "session lost" in pandod.log())
    # A reload makes pandod check again whether the polling thread has run.
    os.kill(pandod.pid, signal.SIGHUP)
    assert manager.next()["RELOADING"] == "1"
    assert manager.next() == {"READY": "1"}
    pandod.terminate()
    assert "STOPPING" in manager.next()


@contextlib.contextmanager
def stopped_thread(pid: int, name: str) -> Iterator[None]:
    """Stops one thread of a child process, as a debugger does."""
    [thread] = [
        int(task.name)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if (task / "comm").read_text() == f"{name}\n"
    ]
    libc = ctypes.CDLL(None, use_errno=True)
    pointer = ctypes.c_void_p
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, pointer, pointer)
    if libc.ptrace(PTRACE_ATTACH, thread, None, None) != 0:
        pytest.skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, thread, None, None)


def test_signs_of_life_stay_away_while_the_polling_thread_is_stuck(start, manager):
    pandod = watched(start, drain_timeout="0s")
    manager.until("WATCHDOG")
    with stopped_thread(pandod.pid, "polling"):
        assert manager.silent_for(WATCHDOG_SECONDS)
    manager.until("WATCHDOG")
