"""A pandod that keeps copies of pages in its own memory."""

from pathlib import Path

from tiered import Tiered

# The size of a page in the pool of Pandod.
PAGE_BYTES = 4096


class HostTiered(Tiered):
    def __init__(self, start, disk: Path | None = None, **options: object) -> None:
        """Starts the pandod; a folder `disk` adds a disk tier behind the host tier."""
        disk_bytes = "4MiB" if disk else None
        super().__init__(
            start,
            disk,
            **{
                "tier_disk": disk,
                "tier_disk_bytes": disk_bytes,
                "tier_host_bytes": "4MiB",
            }
            | options,
        )

    def held_in(self, tier: str) -> int:
        return self.figure("pages", tier=tier)

    def held_pages(self) -> int:
        return self.held_in("host")

    def copied_by(self, tier: str, direction: str) -> int:
        return self.figure("copied_pages_total", tier=tier, direction=direction)
