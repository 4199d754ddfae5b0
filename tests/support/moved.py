"""A pandod whose tiers' pages are copied by a pando-mover."""

from collections.abc import Callable
from pathlib import Path

from eventually import eventually
from metrics_page import MetricsPage
from mover_process import MoverProcess
from tiered import Tiered

# The options that make each tier.
HOST = {"tier_host_bytes": "4MiB"}
DISK = {"tier_disk_bytes": "4MiB"}


class Moved(Tiered):
    """A pandod with a mover and a pool in host memory, so tests can read pages."""

    def __init__(self, start: Callable, folder: Path, **options: object) -> None:
        socket = folder / "mover.sock"
        without_disk = {"tier_disk": None, "tier_disk_bytes": None}
        tiers = {} if "tier_disk_bytes" in options else without_disk
        super().__init__(
            start, folder / "tier", **tiers | options | {"mover_socket": socket}
        )
        self.mover = MoverProcess(socket, folder / "mover.log")
        self._tier = "host" if "tier_host_bytes" in options else "disk"

    def held_pages(self) -> int:
        return self.figure("pages", tier=self._tier)

    def has_mover(self) -> bool:
        return MetricsPage(self.http).sum("pando_tier_mover_present") == 1

    def start_mover(self) -> None:
        self.mover.start()
        eventually(self.has_mover)
