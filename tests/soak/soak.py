"""One soak: load and disturbances in two phases, with accounts after each."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pando_kv import Client
from soak import accounts
from soak.accounts import Figures, settled
from soak.disturbances import MAX_JUMP_SECONDS, Disturbances
from soak.journal import Journal
from soak.memory import MIN_SECONDS, MemoryRecord
from soak.requests import Requests
from soak.system import System
from soak.table import Table

# The first phase's share of the time, in which pandod dies every few seconds. In the
# second phase pandod never dies.
RESTARTS_SHARE = 0.25
DISTURBANCE_SECONDS = 0.5
TICK_SECONDS = 0.05
STOP_SECONDS = 60
REHEARSED_REQUESTS = 50
# Errors that pandod logs for a bad file at a reload and for a store that is down.
EXPECTED_ERRORS = (
    "the options stay as they are",
    "shared pages cannot be",
    "pages cannot be shared",
    "a shared page cannot be erased",
    "what was flushed or reset is still in the shared store",
)
# The number of evicted runs that pandod remembers. Its memory grows until then.
REMEMBERED_RUNS = 65_536


@dataclass(frozen=True)
class Plan:
    seconds: float
    workers: int
    seed: int
    table_seconds: float = 5.0


class SoakFailed(Exception):
    """The error of a soak, whose message has one fault per line."""


def errors_in(log: str) -> list[str]:
    """Returns the lines of failures that a soak does not bring about itself."""
    return [
        line
        for line in log.splitlines()
        if '"level":"error"' in line or '"level":"critical"' in line
        if not any(expected in line for expected in EXPECTED_ERRORS)
    ]


class Soak:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._random = np.random.default_rng(plan.seed)
        self._journal = Journal()
        self._system = System(folder, plan.workers, plan.seed * 1_000_000)
        self._disturbances = Disturbances(self._system, self._journal, self._random)
        self._table = Table(self._system)
        self._explained: dict[str, int] = {}
        self._loaded: dict[str, float] = {}

    def run(self) -> None:
        """Runs both phases; prints a table and a summary.

        Raises SoakFailed with the faults.
        """
        try:
            self._restarts(RESTARTS_SHARE * self._plan.seconds)
            self._endurance((1 - RESTARTS_SHARE) * self._plan.seconds)
        finally:
            self._system.close()

    def _restarts(self, seconds: float) -> None:
        self._system.start_pandod()
        self._system.watchers.open()
        self._load("restarts", seconds, may_restart=True)
        self._disturbances.restart_pandod()
        self._leave()
        self._settle()
        self._stop_pandod()

    def _endurance(self, seconds: float) -> None:
        """Loads one pandod, which may need no more resources at the end than before."""
        watchers = self._system.watchers
        self._system.start_pandod()
        before = self._rehearsed(seconds)
        watchers.open()
        memory = MemoryRecord()
        self._load("endurance", seconds, memory=memory)
        self._leave()
        self._settle()
        # gRPC keeps threads for half a minute of the wall clock, which a test may have
        # set back. The clock now jumps past the end of all these times.
        self._system.clock.set(2 * MAX_JUMP_SECONDS)
        self._require(
            settled(lambda: accounts.more_than(before, self._system.figures()))
        )
        self._require(memory.grown())
        self._loaded = self._system.metrics().by(
            "tier", "pando_tier_copied_pages_total", direction="load"
        )
        self._require(
            [f"nothing came from {t}" for t, n in self._loaded.items() if not n]
        )
        self._stop_pandod()
        self._print_summary(memory)

    def _rehearsed(self, seconds: float) -> Figures:
        """Returns pandod's resources after everything was used and left again."""
        watchers = self._system.watchers
        watchers.open()
        with Client(self._system.pandod.address) as client:
            requests = Requests(client, self._random)
            for _ in range(REHEARSED_REQUESTS):
                requests.one()
            if seconds >= MIN_SECONDS:
                self._fill_memory_of_evictions(client)
        self._system.metrics()
        watchers.close()
        return accounts.least(self._system.figures)

    def _fill_memory_of_evictions(self, client: Client) -> None:
        page_tokens = client.pool.layout.page_tokens
        count = client.pool.capacity_pages // 2
        for _ in range(0, REMEMBERED_RUNS, count):
            for page in client.allocate_pages(count):
                tokens = self._random.integers(0, 2**32, page_tokens, np.uint32)
                client.insert(tokens, [page])
            client.flush()

    def _load(
        self,
        phase: str,
        seconds: float,
        *,
        may_restart: bool = False,
        memory: MemoryRecord | None = None,
    ) -> None:
        self._system.fleet.fill()
        self._require(settled(self._not_started))
        now = time.monotonic()
        end, row_at, disturbance_at = now + seconds, now, now
        while now < end:
            if now >= disturbance_at:
                self._disturbances.one(may_restart)
                pause = self._random.exponential(DISTURBANCE_SECONDS)
                disturbance_at = now + pause
            self._disturbances.undo_due()
            self._look()
            if now >= row_at:
                row_at += self._plan.table_seconds
                self._print_row(phase)
            if memory:
                memory.add(now, Figures.of(self._system.pandod.pid).memory_kib)
            time.sleep(TICK_SECONDS)
            now = time.monotonic()
        self._print_row(phase)

    def _not_started(self) -> list[str]:
        self._look()
        workers = self._system.fleet.running
        return [f"worker {w.number} does not start" for w in workers if not w.started]

    def _look(self) -> None:
        """Raises SoakFailed for any failure so far that no disturbance explains."""
        fleet = self._system.fleet
        fleet.read_reports()
        wrong = [*fleet.failures(), *self._system.watchers.failures()]
        for worker, error in fleet.take_errors():
            if self._journal.explains(worker.number, error):
                reason = error["error"]
                self._explained[reason] = self._explained.get(reason, 0) + 1
            else:
                wrong.append(f"worker {worker.number}: nothing explains {error}")
        self._require(wrong)

    def _leave(self) -> None:
        """Waits until each worker finished more requests, then makes all workers leave.

        About half of them are killed; the others end by themselves.
        """
        fleet = self._system.fleet
        self._disturbances.undo_all()
        before = {worker.number: worker.finished for worker in fleet.running}

        def stuck() -> list[str]:
            self._look()
            return [
                f"worker {worker.number} finishes nothing any more"
                for worker in fleet.running
                if worker.finished == before[worker.number]
            ]

        self._require(settled(stuck))
        for worker in list(fleet.running):
            if self._random.random() < 0.5:
                fleet.kill(worker)
            else:
                fleet.stop(worker, STOP_SECONDS)
        self._look()

    def _settle(self) -> None:
        """Checks that nothing is held any more, and that all accounts are exact."""
        watchers = self._system.watchers
        with Client(self._system.pandod.address, name="accountant") as client:
            self._require(settled(lambda: accounts.held(client)))
            # Stores and loads that are under way end by themselves.
            self._require(settled(lambda: accounts.unbalanced(self._system.metrics())))
            self._require(watchers.differing())
            client.flush()
            self._require(accounts.held(client))
            self._require(watchers.differing())
        watchers.close()

    def _stop_pandod(self) -> None:
        pandod = self._system.pandod
        self._require(accounts.differing("the exit status", pandod.stop(), 0))
        self._require(errors_in(pandod.log()))

    def _require(self, wrong: list[str]) -> None:
        if wrong:
            raise SoakFailed("\n".join(wrong))

    def _print_row(self, phase: str) -> None:
        errors = sum(self._explained.values())
        self._table.row(phase, errors, len(self._journal.disturbances))

    def _print_summary(self, memory: MemoryRecord) -> None:
        print(self._system.fleet.totals())
        print("pages loaded:", self._loaded)
        print("done:", self._journal.counts())
        print("errors, all explained:", dict(sorted(self._explained.items())))
        print("events lost by watchers:", self._system.watchers.lost, "times")
        print(memory, flush=True)
