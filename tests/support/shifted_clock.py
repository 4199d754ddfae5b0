"""A wall clock that a test moves, for one process."""

import struct
from pathlib import Path

from preload import preload

_SOURCE = Path(__file__).with_suffix(".c")


class ShiftedClock:
    """The clock of a process started with `environment`; see shifted_clock.c."""

    def __init__(self, folder: Path) -> None:
        self._offset = folder / "clock_offset"
        self.set(0)
        self.environment = preload(_SOURCE, folder) | {
            "SHIFTED_CLOCK": str(self._offset)
        }

    def set(self, seconds: float) -> None:
        """Sets how far the clock is ahead of the system's, from now on."""
        with self._offset.open("r+b" if self._offset.exists() else "wb") as file:
            file.write(struct.pack("=q", int(seconds * 1e9)))
