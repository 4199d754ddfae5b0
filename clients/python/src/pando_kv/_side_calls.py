"""Calls that wait, each in its own thread, while a scheduler goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("pando_kv")

# The largest number of calls that wait at once; further requests do not wait.
_MOST = 32
# Seconds in each step in which the scheduler waits for new calls to end: a call that
# has nothing to wait for ends sooner.
_SECONDS_A_STEP = 0.005
# The longest wait that pandod accepts.
_MAX_WAIT_MS = 600_000


def wait_seconds(name: str, value: Any) -> float:
    """Returns the seconds that a request may wait. `value` is the option `name` in
    milliseconds. Raises ValueError if it is not a number from 0 to 600,000."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MAX_WAIT_MS:
        raise ValueError(
            f"{name} is {value!r}; must be a number from 0 to {_MAX_WAIT_MS}"
        )
    return float(value) / 1000


class SideCalls:
    """The threads of calls that wait. Owned by a scheduler, and used by its thread
    only. A call counts until it ends, even if its result is no longer wanted. The
    threads are daemons, so the process can exit without them."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._left = _SECONDS_A_STEP
        self._is_full = False  # as checked in this step

    def begin_step(self) -> None:
        self._left = _SECONDS_A_STEP
        self._is_full = False

    def has_room(self) -> bool:
        """Returns whether one more call may begin. Cheap, because a scheduler may ask
        for each request of a long queue."""
        if len(self._threads) == _MOST and not self._is_full:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._is_full = len(self._threads) == _MOST
        return len(self._threads) < _MOST

    def begin(self, run: Callable[[], None]) -> threading.Thread | None:
        """Runs `run` in a new thread and returns that thread. Returns None if there is
        no room, or no thread can be started."""
        if not self.has_room():
            return None
        begun = time.monotonic()
        thread = threading.Thread(target=run, name="pando-waits", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _log.warning("no thread to wait for pandod in: %s", error)
            return None
        self._threads.append(thread)
        thread.join(self._left)
        self._left = max(0.0, self._left - (time.monotonic() - begun))
        return thread
