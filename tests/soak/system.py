"""The system under test: pandod, its tiers, its workers, and watchers of its events."""

import os
from dataclasses import replace
from pathlib import Path

from metrics_page import MetricsPage, free_address
from pandod_process import PAGE_TOKENS, Pandod
from redis_server import RedisServer
from shifted_clock import ShiftedClock
from soak.accounts import Figures, connections_to
from soak.fleet import Fleet
from soak.watchers import Watchers

GRACE_SECONDS = 1.0
# The workers want more pages than that at one time, so the pool is always full.
POOL_PAGES_PER_WORKER = 4
# The disk tier has room for few of the prompts, so the rest comes from the store. The
# store needs about half of its bytes for itself.
DISK_BYTES = "256KiB"
STORE_BYTES = "8mb"
# With credentials pandod checks each call, and each session has an owner.
CREDENTIALS = f"""\
credentials:
- name: soak
  role: admin
  uid: {os.getuid()}
"""


class System:
    def __init__(self, folder: Path, workers: int, first_seed: int) -> None:
        self.http = free_address()
        self.config = folder / "pandod.yaml"
        self.configure()
        self.store = RedisServer(
            folder / "store", maxmemory=STORE_BYTES, maxmemory_policy="volatile-ttl"
        )
        self.pandod = Pandod(
            folder,
            config=self.config,
            http=self.http,
            pool_pages=POOL_PAGES_PER_WORKER * workers,
            session_grace=f"{GRACE_SECONDS}s",
            # The quarantine is longer than any stop of a worker that is cut off.
            quarantine="20s",
            drain_timeout="1s",
            event_history=64,
            check_invariants_every="500ms",
            verify_pages=1,
            model="soak",
            tier_disk=folder / "tier",
            tier_disk_bytes=DISK_BYTES,
            tier_shared=self.store.url,
            tier_min_load_tokens=PAGE_TOKENS,
        )
        self.clock = ShiftedClock(folder)
        self.watchers = Watchers(self.pandod.address)
        self.fleet = Fleet(self.pandod.socket, folder, workers, first_seed)

    def configure(self, options: str = "") -> None:
        self.config.write_text(CREDENTIALS + options)

    def start_pandod(self) -> None:
        # Otherwise each of many threads has an arena of its own, which keeps the memory
        # of a burst.
        self.pandod.start(**self.clock.environment, MALLOC_ARENA_MAX="1")

    def metrics(self) -> MetricsPage:
        return MetricsPage(self.http)

    def figures(self) -> Figures:
        """Returns pandod's figures without its connections to the store.

        pandod keeps as many of these connections as it ever needed at one time.
        """
        pid = self.pandod.pid
        kept = connections_to(pid, self.store.port)
        figures = Figures.of(pid)
        return replace(figures, descriptors=figures.descriptors - kept)

    def close(self) -> None:
        self.fleet.close()
        self.watchers.close()
        self.pandod.close()
        self.store.kill()
