"""A wait for an event in another process."""

import time
from collections.abc import Callable

_LIMIT_SECONDS = 30
_PAUSE_SECONDS = 0.005


def eventually(holds: Callable[[], bool]) -> None:
    """Returns as soon as `holds()` is true; fails after 30 seconds."""
    end = time.monotonic() + _LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(_PAUSE_SECONDS)
