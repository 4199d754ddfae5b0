"""A pandod whose tier is a folder that several pandods share."""

import os
from contextlib import ExitStack
from pathlib import Path

from pandod_process import serving
from stalled_disk import StalledDisk
from tiered import Tiered

# The levels are the model, the namespace, the beginning of the name, and the block.
_FILES = "*/*/*/[!.]*"


class Sharing(Tiered):
    """One of the pandods that share the folder."""

    def __init__(self, start, folder: Path, **options: object) -> None:
        super().__init__(
            start,
            folder,
            **{
                "tier_disk": None,
                "tier_disk_bytes": None,
                "tier_shared": f"file://{folder}",
            }
            | options,
        )

    def held_pages(self) -> int:
        # Unlike a glob, os.walk may run while files are erased.
        return sum(
            not name.startswith(".")
            for _, _, names in os.walk(self.folder)
            for name in names
        )

    def refused(self, direction: str) -> int:
        return self.figure("remote_refused", direction=direction)


def block_files(folder: Path) -> list[Path]:
    """Returns the files of blocks; those of prompts' beginnings come first."""
    return sorted(folder.glob(_FILES), key=_last_use, reverse=True)


def _last_use(path: Path) -> int:
    return path.stat().st_mtime_ns


class Machines:
    """Starts each pandod as if on a machine of its own, with one shared folder."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._started = 0
        self.shared = folder / "shared"
        self.shared.mkdir(mode=0o700)

    def start(self, **options: object) -> Sharing:
        return Sharing(self._serving, self.shared, **options)

    def start_stallable(self, **options: object) -> tuple[Sharing, StalledDisk]:
        """Starts a pandod; returns it with a disk that stalls for it alone."""
        sharing = self.start(**options)
        disk = StalledDisk(self._folder)
        self._stack.callback(disk.go_on)
        sharing.pandod.stop()
        sharing.pandod.start(**disk.environment)
        return sharing, disk

    def _serving(self, **options: object):
        self._started += 1
        folder = self._folder / f"machine-{self._started}"
        folder.mkdir()
        return self._stack.enter_context(serving(folder, **options))
