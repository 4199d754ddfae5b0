"""The rows of `make bench` that say how long a short call on a lane waits beside each
call at its largest legal size."""

import contextlib
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from pando_kv import Client
from rows import Row
from started_pandod import SMALLEST_LAYOUT, started_pandod
from waits import block_rows, operator_rows, prefix_rows, session_rows
from waits.long_calls import DEPTH, MOST_TOKENS, LongCalls
from waits.other_worker import OtherWorker
from waits.scoring_rows import rows_beside_scoring

ROUNDS = 3
POOL = ("--page-tokens", 1, "--pool-pages", MOST_TOKENS + 2 * DEPTH)
LOSSES = ("--session-grace", "0s", "--quarantine", "1h")


def wait_rows(build: Path) -> list[Row]:
    """Returns each row of the round with the least value, because waits for a CPU
    differ from round to round, and holds of the cache do not."""
    rounds = [[*rows_of_round(build)] for _ in range(ROUNDS)]
    return [min(row, key=attrgetter("value")) for row in zip(*rounds, strict=True)]


def rows_of_round(build: Path) -> Iterator[Row]:
    with waiting(build) as (other, calls):
        yield from prefix_rows.rows_at_depth(other, calls)
        yield prefix_rows.row_while_it_fills(other, calls)
        yield from operator_rows.rows_of_operators(other, calls)
        yield from operator_rows.rows_of_namespaces(other, calls)
        calls.fill()
        yield from prefix_rows.rows_at_many_leaves(other, calls)
        yield from session_rows.rows_of_sessions(other, calls)
        yield from rows_beside_scoring(other, calls.address)
        yield from operator_rows.rows_of_quarantine(other, calls)
        yield operator_rows.row_of_drain(other, calls)
    # After the first Watch a pandod records events until it exits, so Watch gets a
    # pandod of its own.
    with waiting(build) as (other, calls):
        calls.fill()
        yield session_rows.row_of_watch(other, calls)
    with waiting(build, *block_rows.OPTIONS) as (other, calls):
        yield from block_rows.rows_of_blocks(other, calls)
        yield block_rows.row_of_locked_blocks(other, calls)


@contextlib.contextmanager
def waiting(build: Path, *options: object) -> Iterator[tuple[OtherWorker, LongCalls]]:
    """Starts a pandod, a worker whose calls are timed, and a client that makes long
    calls."""
    with (
        started_pandod(build, *POOL, *LOSSES, *SMALLEST_LAYOUT, *options) as (
            address,
            _,
        ),
        Client(address, name="the one with long calls", timeout=300) as client,
        contextlib.closing(LongCalls(address, client)) as calls,
        contextlib.closing(OtherWorker(address)) as other,
    ):
        yield other, calls
