"""Checks, from outside, of a pandod that all workers have left."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metrics_page import MetricsPage
from pando_kv import Client

SETTLE_SECONDS = 60
# The name of pandod's own session, which stays open while pandod runs.
MOVER = "pandod-tiers"
_CLOSING_SECONDS = 1
_PAUSE_SECONDS = 0.02


# gRPC adds a timer thread when several timers are late at once, and keeps it.
_TIMER_THREAD = "grpc_global_tim"
_MAX_TIMER_THREADS = 8


@dataclass(frozen=True)
class Figures:
    """The resources of a process, as the kernel counts them."""

    descriptors: int
    threads: Counter[str]
    """The number of threads by name."""
    memory_kib: int
    """The resident memory without the pool and other shared memory."""

    @staticmethod
    def of(pid: int) -> "Figures":
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status)
        return Figures(
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),
            threads=Counter(
                (task / "comm").read_text().strip()
                for task in Path(f"/proc/{pid}/task").iterdir()
            ),
            memory_kib=int(fields["RssAnon"].split()[0]),
        )


def least(look: Callable[[], Figures]) -> Figures:
    """Returns the figures of an unused process once its connections are closed."""
    end = time.monotonic() + _CLOSING_SECONDS
    figures = look()
    while time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)
        figures = min(figures, look(), key=lambda each: each.descriptors)
    return figures


def connections_to(pid: int, port: int) -> int:
    """Returns the number of a process's TCP connections to a port, with dead ones."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    inodes = {
        fields[9]
        for fields in map(str.split, lines)
        if int(fields[2].partition(":")[2], 16) == port
    }
    return sum(
        _target(descriptor) in {f"socket:[{inode}]" for inode in inodes}
        for descriptor in Path(f"/proc/{pid}/fd").iterdir()
    )


def _target(descriptor: Path) -> str:
    """Returns the descriptor's target, or "" if it was closed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink(descriptor)
    return ""


def settled(find: Callable[[], list[str]]) -> list[str]:
    """Returns the faults that remain after a minute; [] once there are none."""
    end = time.monotonic() + SETTLE_SECONDS
    while (wrong := find()) and time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)
    return wrong


def differing(what: str, is_: float, must_be: float) -> list[str]:
    return [] if is_ == must_be else [f"{what} is {is_:g}, must be {must_be:g}"]


def held(client: Client) -> list[str]:
    """Returns what is still held when only `client` is left, which holds nothing."""
    stats = client.stats()
    pages = stats.pages
    workers = [s for s in client.sessions().items if s.client_name != MOVER]
    return [
        *differing("sessions", len(workers), 1),
        *differing("locks", stats.locks, 0),
        *differing("waiting matches", stats.waiting_matches, 0),
        *differing("reserved pages", pages.reserved, 0),
        *differing("quarantined pages", pages.quarantined, 0),
        *differing("protected pages", pages.protected, 0),
        *differing(
            "free and evictable pages",
            pages.free + pages.evictable,
            pages.capacity - pages.padding,
        ),
        *(f"invariant violated: {each}" for each in client.check_invariants()),
    ]


def unbalanced(metrics: MetricsPage) -> list[str]:
    """Returns the counters of one boot of pandod that do not add up."""
    total = metrics.sum
    cached = total("pando_pool_pages", state="evictable") + total(
        "pando_pool_pages", state="protected"
    )
    page_tokens = total("pando_pool_page_tokens")
    inserted = total("pando_insert_tokens_total", result="new") / page_tokens
    return [
        *differing(
            "locks taken less ended",
            total("pando_locks_taken_total") - total("pando_locks_ended_total"),
            total("pando_locks"),
        ),
        *differing(
            "sessions opened less ended",
            total("pando_sessions_opened_total") - total("pando_sessions_ended_total"),
            total("pando_sessions"),
        ),
        *differing(
            "pages inserted less evicted",
            inserted - total("pando_evicted_pages_total"),
            cached,
        ),
        *differing(
            "waits begun less ended",
            total("pando_pending_waits_total")
            - total("pando_pending_waits_ended_total"),
            total("pando_pending_matches"),
        ),
        *differing(
            "violations of invariants", total("pando_invariant_violations_total"), 0
        ),
        *differing(
            "pages changed while cached", total("pando_page_violations_total"), 0
        ),
    ]


def more_than(before: Figures, now: Figures) -> list[str]:
    """Returns the descriptors and threads that were added since `before`."""
    wrong = []
    if now.descriptors > before.descriptors:
        wrong.append(f"descriptors are {now.descriptors}, may be {before.descriptors}")
    for name, count in now.threads.items():
        limit = _MAX_TIMER_THREADS if name == _TIMER_THREAD else before.threads[name]
        if count > limit:
            wrong.append(f"threads {name} are {count}, may be {limit}")
    return wrong
