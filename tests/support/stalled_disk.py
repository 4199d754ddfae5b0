"""A disk that a test stalls, for the tier of one process."""

from pathlib import Path

from preload import preload

_SOURCE = Path(__file__).with_suffix(".c")


class StalledDisk:
    """The disk of a process that is started with `environment`; see stalled_disk.c."""

    def __init__(self, folder: Path) -> None:
        self._flag = folder / "disk_is_stalled"
        self.environment = preload(_SOURCE, folder) | {"STALLED_DISK": str(self._flag)}

    def stall(self, after: int = 0) -> None:
        """Stalls the disk after `after` more reads and writes."""
        self._flag.write_text(str(after))

    def is_reached(self) -> bool:
        """Returns whether as many reads and writes passed as stall() allowed."""
        return self._flag.read_text().strip() == "0"

    def go_on(self) -> None:
        self._flag.unlink(missing_ok=True)
