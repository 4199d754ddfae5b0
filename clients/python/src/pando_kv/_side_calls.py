"""Calls that wait, each in a thread of its own: a scheduler goes on meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("pando_kv")

# Requests beyond these do not wait.
_MOST = 32
# In each step calls are waited for so long: one that has nothing to wait for is
# answered sooner.
_SECONDS_A_STEP = 0.005
# The most that pandod accepts.
_MAX_WAIT_MS = 600_000


def wait_seconds(name: str, value: Any) -> float:
    """How long a request may wait, of the option `name` in milliseconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MAX_WAIT_MS:
        raise ValueError(
            f"{name} is {value!r}; must be a number from 0 to {_MAX_WAIT_MS}"
        )
    return float(value) / 1000


class SideCalls:
    """Begins them; the scheduler's thread alone calls it. Those that are not wanted
    any more count until they are over. No exit of the process waits for them."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._left = _SECONDS_A_STEP
        self._is_full = False  # as it was found in this step

    def begin_step(self) -> None:
        self._left = _SECONDS_A_STEP
        self._is_full = False

    def has_room(self) -> bool:
        """For one more. A long queue may ask for each of its requests."""
        if len(self._threads) == _MOST and not self._is_full:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._is_full = len(self._threads) == _MOST
        return len(self._threads) < _MOST

    def begin(self, run: Callable[[], None]) -> threading.Thread | None:
        """The thread of `run`, or None: there is no room."""
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
