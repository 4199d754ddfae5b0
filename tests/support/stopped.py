"""A pandod that stands still."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from eventually import eventually
from pandod_process import Pandod


@contextlib.contextmanager
def stopped(pandod: Pandod) -> Iterator[None]:
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        eventually(lambda: _states(pandod.pid) == {"T"})
        yield
    finally:
        os.kill(pandod.pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    """The states of its threads, which go on for a moment after the signal."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return {task.read_text().rpartition(")")[2].split()[0] for task in tasks}
