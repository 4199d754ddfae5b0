"""Calls whose connection breaks take effect once; unanswered ones leave nothing."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually
from impatience import impatient
from pando_kv import Client, DeadlineError
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS
from prompts import admit_and_publish, prompt


@pytest.fixture
def worker(cutter):
    """Yields a client whose connection can be cut."""
    with Client(cutter.address, name="worker", lane=False) as client:
        yield client


def _held(watcher):
    stats = watcher.stats()
    return stats.locks, stats.pages.reserved


def _answer_lost(cutter, call, acted):
    """Returns the result of a call whose first answer was lost once it acted."""
    cutter.mute()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        eventually(acted)
        cutter.cut()
        return answer.result()


def test_a_match_whose_answer_is_lost_locks_and_reserves_once(client, cutter, worker):
    admit_and_publish(client, prompt(1))
    match = _answer_lost(
        cutter,
        lambda: worker.match_prefix(
            prompt(3), lock=True, reserve_tokens=3 * PAGE_TOKENS
        ),
        lambda: _held(client) == (1, 2),
    )
    assert _held(client) == (1, 2)
    assert client.stats().counters.repeated_requests == 1
    worker.insert(
        prompt(3)[PAGE_TOKENS:], match.reserved_page_ids, lock=match.lock, unlock=True
    )
    assert client.match_prefix(prompt(3)).matched_tokens == 3 * PAGE_TOKENS


def test_a_lock_whose_answer_is_lost_is_taken_once(client, cutter, worker):
    lock = _answer_lost(
        cutter, lambda: worker.lock([]), lambda: _held(client) == (1, 0)
    )
    assert _held(client) == (1, 0)
    lock.release()
    assert _held(client) == (0, 0)


def test_an_allocation_whose_answer_is_lost_reserves_once(client, cutter, worker):
    pages = _answer_lost(
        cutter, lambda: worker.allocate_pages(3), lambda: _held(client) == (0, 3)
    )
    assert _held(client) == (0, 3)
    worker.free_pages(pages)
    assert _held(client) == (0, 0)


def test_an_insert_whose_answer_is_lost_publishes_once(client, cutter, worker):
    match = worker.match_prefix(prompt(2), lock=True, reserve_tokens=3 * PAGE_TOKENS)
    done = _answer_lost(
        cutter,
        lambda: worker.insert(
            prompt(2),
            match.reserved_page_ids[:2],
            lock=match.lock,
            unlock=True,
            free_page_ids=match.reserved_page_ids[2:],
        ),
        lambda: _held(client) == (0, 0),
    )
    assert (done.existing_tokens, done.freed_duplicates) == (0, 0)
    assert not match.lock.held
    assert client.stats().counters.inserts == 1


def test_a_release_whose_answer_is_lost_succeeds(client, cutter, worker):
    locks = [worker.lock([]) for _ in range(2)]
    _answer_lost(cutter, lambda: worker.unlock(*locks), lambda: _held(client) == (0, 0))
    assert client.stats().counters.locks_released == 2


def test_pages_freed_without_an_answer_are_freed_once(client, cutter, worker):
    pages = worker.allocate_pages(2)
    _answer_lost(
        cutter, lambda: worker.free_pages(pages), lambda: _held(client) == (0, 0)
    )
    assert _held(client) == (0, 0)


def test_calls_under_a_connection_that_breaks_again_and_again_act_once(
    client, cutter, worker
):
    def cut_often():
        for _ in range(20):
            time.sleep(0.05)
            cutter.cut()

    served = 0
    cutting = threading.Thread(target=cut_often)
    cutting.start()
    while cutting.is_alive():
        admit_and_publish(worker, prompt(1, start=served * PAGE_TOKENS))
        served += 1
    cutting.join()
    stats = client.stats()
    assert (stats.counters.inserts, stats.locks) == (served, 0)
    assert stats.pages.reserved == 0


@pytest.mark.parametrize(
    ("call", "brings"),
    [
        (lambda c: c.match_prefix([], lock=True, reserve_tokens=PAGE_TOKENS), (1, 1)),
        (lambda c: c.lock([]), (1, 0)),
        (lambda c: c.allocate_pages(2), (0, 2)),
    ],
    ids=["match_prefix", "lock", "allocate_pages"],
)
class TestWhatACallBringsAfterItsEnd:
    def test_is_given_back_after_a_deadline(self, client, cutter, call, brings):
        with Client(cutter.address, lane=False) as worker:
            cutter.mute()
            with impatient(worker), pytest.raises(DeadlineError):
                call(worker)
            eventually(lambda: _held(client) == brings)
            cutter.cut()
            eventually(lambda: _held(client) == (0, 0))
            assert client.stats().sessions == 2

    def test_is_given_back_after_a_deadline_with_asyncio(
        self, client, cutter, call, brings
    ):
        async def run():
            async with AsyncClient(cutter.address, lane=False) as worker:
                cutter.mute()
                with impatient(worker), pytest.raises(DeadlineError):
                    await call(worker)
                await asyncio.to_thread(eventually, lambda: _held(client) == brings)
                await asyncio.to_thread(cutter.cut)
                await asyncio.to_thread(eventually, lambda: _held(client) == (0, 0))
                assert client.stats().sessions == 2

        asyncio.run(run())

    def test_is_given_back_after_a_cancellation_and_a_break(
        self, client, cutter, call, brings
    ):
        async def run():
            async with AsyncClient(cutter.address, lane=False) as worker:
                cutter.mute()
                task = asyncio.create_task(call(worker))
                await asyncio.to_thread(eventually, lambda: _held(client) == brings)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await asyncio.to_thread(cutter.cut)
                await asyncio.to_thread(eventually, lambda: _held(client) == (0, 0))
                assert client.stats().sessions == 2

        asyncio.run(run())
