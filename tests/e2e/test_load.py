"""Many client processes on a pool far too small; the accounts end exact.

PANDO_LOAD_SECONDS sets a run time in place of a fixed number of requests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pando_kv
import pytest
import raw_calls
from eventually import eventually
from pando_kv import Client

CLIENTS = 8
POOL_PAGES = 48
SECONDS = float(os.environ.get("PANDO_LOAD_SECONDS", "0"))
REQUESTS = 0 if SECONDS else 250
PATIENCE_SECONDS = 240 + SECONDS

CLIENT_PROGRAM = Path(raw_calls.__file__).with_name("load_client.py")


def run_clients(address: str) -> dict[str, int]:
    """Runs the clients and returns the sums of their accounts."""
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                CLIENT_PROGRAM,
                address,
                str(seed),
                str(REQUESTS),
                str(SECONDS),
            ],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(CLIENTS)
    ]
    total: dict[str, int] = {}
    try:
        for process in processes:
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == 0, errors
            for name, value in json.loads(output).items():
                total[name] = total.get(name, 0) + value
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return total


@pytest.mark.timeout(2 * PATIENCE_SECONDS)
def test_clients_on_a_pool_far_too_small_leave_exact_accounts(start_pandod):
    pandod = start_pandod(pool_pages=POOL_PAGES, check_invariants_every="200ms")
    with Client(pandod.address, name="accountant") as client:
        total = run_clients(pandod.address)
        eventually(lambda: client.stats().sessions == 1)
        stats = client.stats()
        pages, counters = stats.pages, stats.counters

        # The run was a real load: pages were shared, evicted, contended for and
        # refused.
        assert total["checked_pages"] > 1000
        assert total["hit_tokens"] > 0
        assert total["allocation_failures"] > 0
        assert counters.duplicate_pages > 0
        assert counters.evicted_pages_for_allocation > POOL_PAGES

        # No worker holds any page, and every page is accounted for.
        assert (stats.locks, pages.reserved, pages.quarantined) == (0, 0, 0)
        assert (pages.protected, pages.padding) == (0, 1)
        assert pages.free + pages.evictable == POOL_PAGES - 1
        assert counters.sessions_lost == 0

        # pandod counted what its clients counted.
        for name in (
            "matches",
            "query_tokens",
            "hit_tokens",
            "inserts",
            "allocated_pages",
            "allocation_failures",
            "locks_taken",
        ):
            assert getattr(counters, name) == total[name], name
        assert counters.locks_released == total["locks_taken"]
        assert counters.evicted_pages_on_request == total["evicted_pages"]
        offered = counters.inserted_pages + counters.duplicate_pages
        assert offered == total["offered_pages"]
        evicted = (
            counters.evicted_pages_for_allocation + counters.evicted_pages_on_request
        )
        assert counters.inserted_pages - evicted == pages.evictable

        assert client.check_invariants() == []
        assert client.flush() == pando_kv.Flush(pages.evictable, 0)
        empty = client.stats()
        assert empty.pages.free == POOL_PAGES - 1
        assert (empty.nodes, empty.namespaces) == (0, 0)
    assert "violat" not in pandod.log()
