"""A pandod that is stopped by SIGSTOP."""

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
        eventually(lambda: is_stopped(pandod))
        yield
    finally:
        os.kill(pandod.pid, signal.SIGCONT)


def is_stopped(pandod: Pandod) -> bool:
    """Returns whether all threads are stopped, which takes a moment."""
    tasks = Path(f"/proc/{pandod.pid}/task").glob("*/stat")
    states = {task.read_text().rpartition(")")[2].split()[0] for task in tasks}
    return states == {"T"}
