"""Faults that the soak must find."""

import contextlib
import socket

import numpy as np
import pytest
from eventually import eventually
from marked_prompts import MarkedPages
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pandod_process import POOL_PAGES, serving
from soak import accounts
from soak.accounts import Figures
from soak.journal import RECOVERY_SECONDS, Journal
from soak.memory import MAX_GROWTH_KIB, MIN_SECONDS, MemoryRecord
from soak.requests import Requests, Violation

FREE = POOL_PAGES - 1
"""The pages of an empty pool, without the padding page."""


@pytest.fixture
def http():
    return free_address()


@pytest.fixture
def pandod(tmp_path, http):
    with serving(tmp_path, http=http) as server:
        yield server


def test_what_is_held_by_somebody_else_is_found(pandod):
    with Client(pandod.address) as accountant:
        assert accounts.held(accountant) == []
        with Client(pandod.address) as other:
            other.insert(range(16), other.allocate_pages(1))
            other.allocate_pages(2)
            with other.lock(range(16)):
                assert accounts.held(accountant) == [
                    "sessions is 2, must be 1",
                    "locks is 1, must be 0",
                    "reserved pages is 2, must be 0",
                    "protected pages is 1, must be 0",
                    f"free and evictable pages is {FREE - 3}, must be {FREE}",
                ]
        eventually(lambda: accounts.held(accountant) == [])


def test_counters_add_up_while_things_are_held(pandod, http):
    with Client(pandod.address) as client:
        requests = Requests(client, np.random.default_rng(1))
        for _ in range(50):
            requests.one()
        assert accounts.unbalanced(MetricsPage(http)) == []


def test_descriptors_that_stay_open_are_found(pandod):
    before = Figures.of(pandod.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            peer = stack.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(pandod.socket))
        eventually(lambda: accounts.more_than(before, Figures.of(pandod.pid)) != [])
    eventually(lambda: accounts.more_than(before, Figures.of(pandod.pid)) == [])


@pytest.mark.parametrize("seed", range(4))
def test_pages_that_somebody_else_writes_are_found(pandod, seed):
    with Client(pandod.address) as client, Client(pandod.address) as vandal:
        requests = Requests(client, np.random.default_rng(seed))
        pages = MarkedPages(vandal.attach_pool())
        with pytest.raises(Violation, match=r"wrong KV|written by somebody else"):
            for _ in range(100):
                requests.one()
                pages.write(np.arange(POOL_PAGES), 7)


def test_an_error_is_explained_only_by_what_was_done_to_its_worker_and_when():
    journal = Journal()
    journal.note("cut", 10, 10, worker=1)
    journal.note("release_locks", 50, 51)

    def explained(worker: int, reason: str, began: float, at: float) -> bool:
        return journal.explains(worker, {"error": reason, "began": began, "at": at})

    assert explained(1, "SESSION_LOST", 9, 11)
    assert explained(1, "SESSION_LOST", 10 + RECOVERY_SECONDS, 30)
    assert not explained(1, "SESSION_LOST", 11 + RECOVERY_SECONDS, 30)
    assert not explained(1, "SESSION_LOST", 8, 9)
    assert not explained(2, "SESSION_LOST", 9, 11)
    assert not explained(1, "PAGE_NOT_OWNED", 9, 11)
    assert not explained(1, "LOCK_UNKNOWN", 9, 11)
    assert explained(2, "LOCK_UNKNOWN", 49, 50.5)


def memory(kib_per_second: float, seconds: int) -> MemoryRecord:
    """Returns a record of memory that grows at this rate, with noise.

    Caches fill up in the first third.
    """
    record = MemoryRecord()
    for second in range(seconds):
        cached = min(second, seconds // 3) * 100
        noise = second % 7 * 30
        record.add(second, int(9000 + cached + noise + kib_per_second * second))
    return record


def test_memory_that_grows_on_is_found():
    seconds = 2 * MIN_SECONDS
    per_second = 3 * MAX_GROWTH_KIB / seconds
    assert memory(0, seconds).grown() == []
    assert memory(per_second, seconds).grown() != []
    assert memory(per_second, MIN_SECONDS - 1).grown() == []
