"""Waiting for what another process does in its own time."""

import time
from collections.abc import Callable

_LIMIT_SECONDS = 30
_PAUSE_SECONDS = 0.005


def eventually(holds: Callable[[], bool]) -> None:
    """Returns as soon as it holds; fails if it does not within a generous limit."""
    end = time.monotonic() + _LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(_PAUSE_SECONDS)
