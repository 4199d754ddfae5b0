"""What is soaked: pandod, its workers, and watchers of its events."""

import os
from pathlib import Path

from metrics_page import MetricsPage, free_address
from pandod_process import Pandod
from shifted_clock import ShiftedClock
from soak.fleet import Fleet
from soak.watchers import Watchers

GRACE_SECONDS = 1.0
# Less than the workers want at one time: the pool is always full.
POOL_PAGES_PER_WORKER = 4
# So each call is checked, and each session has an owner.
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
        self.pandod = Pandod(
            folder,
            config=self.config,
            http=self.http,
            pool_pages=POOL_PAGES_PER_WORKER * workers,
            session_grace=f"{GRACE_SECONDS}s",
            # Longer than a worker that is cut off is stopped.
            quarantine="20s",
            drain_timeout="1s",
            event_history=64,
            check_invariants_every="500ms",
            verify_pages=1,
        )
        self.clock = ShiftedClock(folder)
        self.watchers = Watchers(self.pandod.address)
        self.fleet = Fleet(self.pandod.socket, folder, workers, first_seed)

    def configure(self, options: str = "") -> None:
        self.config.write_text(CREDENTIALS + options)

    def start_pandod(self) -> None:
        self.pandod.start(**self.clock.environment)

    def metrics(self) -> MetricsPage:
        return MetricsPage(self.http)

    def close(self) -> None:
        self.fleet.close()
        self.watchers.close()
        self.pandod.close()
