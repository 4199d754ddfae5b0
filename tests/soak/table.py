"""The table of a running soak, with a line every few seconds."""

import time

from soak.accounts import Figures
from soak.system import System

_COLUMNS = {
    "phase": 10,
    "s": 6,
    "requests": 9,
    "per s": 6,
    "refused": 8,
    "errors": 7,
    "done": 5,
    "sessions": 9,
    "locks": 6,
    "free": 5,
    "evictable": 10,
    "protected": 10,
    "reserved": 9,
    "quarantined": 12,
    "stored": 8,
    "loaded": 8,
    "fds": 4,
    "threads": 8,
    "KiB": 7,
}


class Table:
    def __init__(self, system: System) -> None:
        self._system = system
        self._began = time.monotonic()
        self._last = (self._began, 0)
        print("".join(f"{name:>{width}}" for name, width in _COLUMNS.items()))

    def row(self, phase: str, errors: int, disturbances: int) -> None:
        now = time.monotonic()
        totals = self._system.fleet.totals()
        then, finished = self._last
        self._last = (now, totals["finished"])
        metrics = self._system.metrics()
        pages = metrics.by("state", "pando_pool_pages")
        copied = metrics.by("direction", "pando_tier_copied_pages_total")
        figures = Figures.of(self._system.pandod.pid)
        values = {
            "phase": phase,
            "s": f"{now - self._began:.0f}",
            "requests": totals["finished"],
            "per s": f"{(totals['finished'] - finished) / (now - then):.0f}",
            "refused": totals["refused"],
            "errors": errors,
            "done": disturbances,
            "sessions": f"{metrics.sum('pando_sessions'):.0f}",
            "locks": f"{metrics.sum('pando_locks'):.0f}",
            **{state: f"{count:.0f}" for state, count in pages.items()},
            "stored": f"{copied['store']:.0f}",
            "loaded": f"{copied['load']:.0f}",
            "fds": figures.descriptors,
            "threads": figures.threads.total(),
            "KiB": figures.memory_kib,
        }
        print(
            "".join(f"{values[name]:>{width}}" for name, width in _COLUMNS.items()),
            flush=True,
        )
