"""A disk that a test stalls, for the tier of one process."""

import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


class StalledDisk:
    """Give `environment` to the process; see stalled_disk.c."""

    def __init__(self, folder: Path) -> None:
        library = folder / "stalled_disk.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *flags, "-o", library, _SOURCE], check=True)
        self._flag = folder / "disk_is_stalled"
        self.environment = {
            "LD_PRELOAD": str(library),
            "STALLED_DISK": str(self._flag),
        }

    def stall(self, after: int = 0) -> None:
        """From now on, or once so many reads and writes are let through."""
        self._flag.write_text(str(after))

    def go_on(self) -> None:
        self._flag.unlink(missing_ok=True)
