"""Calls that end without an answer: the client settles their effects later."""

import asyncio
import contextlib

import pytest
from eventually import eventually
from impatience import impatient
from pando_kv import Client, DeadlineError, LockInDoubtError
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS
from prompts import prompt
from stopped import stopped


@pytest.fixture
def worker(cutter):
    """Yields a client whose requests can be lost."""
    with Client(cutter.address, name="worker", lane=False) as client:
        yield client


@contextlib.contextmanager
def lost(cutter, worker):
    """Drops the requests that the worker sends inside the block."""
    cutter.deafen()
    try:
        with impatient(worker), pytest.raises(DeadlineError):
            yield
    finally:
        cutter.cut()


def held(operator):
    stats = operator.stats()
    return stats.locks, stats.pages.reserved


def test_a_lock_is_released_in_the_end(client, cutter, worker):
    lock = worker.lock([])
    with lost(cutter, worker):
        lock.release()
    eventually(lambda: held(client) == (0, 0))
    assert not lock.held


def test_pages_are_freed_in_the_end(client, cutter, worker):
    pages = worker.allocate_pages(3)
    with lost(cutter, worker):
        worker.free_pages(pages)
    eventually(lambda: held(client) == (0, 0))


def test_pages_are_published_in_the_end(client, cutter, worker):
    match = worker.match_prefix(prompt(2), lock=True, reserve_tokens=3 * PAGE_TOKENS)
    pages = match.reserved_page_ids
    with lost(cutter, worker):
        worker.insert(
            prompt(2), pages[:2], lock=match.lock, unlock=True, free_page_ids=pages[2:]
        )
    eventually(lambda: held(client) == (0, 0))
    assert client.match_prefix(prompt(2)).matched_tokens == 2 * PAGE_TOKENS


def test_nothing_is_inserted_after_a_lock_whose_end_is_not_known(
    client, cutter, worker
):
    match = worker.match_prefix(prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    first, second = match.reserved_page_ids
    with lost(cutter, worker):
        worker.insert(prompt(1), [first], lock=match.lock, relock=True)
    assert match.lock.is_in_doubt
    with pytest.raises(LockInDoubtError, match="can only be released"):
        worker.insert(prompt(2)[PAGE_TOKENS:], [second], lock=match.lock, relock=True)
    # A wrongly inserted second page would be found here.
    assert client.match_prefix(prompt(2)[PAGE_TOKENS:]).matched_tokens == 0
    worker.insert((), (), lock=match.lock, unlock=True, free_page_ids=[second])
    eventually(lambda: held(client) == (0, 0))


def test_what_can_be_published_no_more_is_freed(client, cutter, worker):
    """The lock is gone before the insert reaches pandod."""
    match = worker.match_prefix(prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS)
    with lost(cutter, worker):
        worker.insert(prompt(2), match.reserved_page_ids, lock=match.lock, relock=True)
    match.lock.release()
    eventually(lambda: held(client) == (0, 0))


def test_what_came_while_pandod_stood_still_is_given_back_after_many_other_calls(
    pandod, client, caller
):
    """pandod forgets old answers, so the client must use the first answer."""
    with impatient(caller):
        with stopped(pandod):
            # Five deadlines take so long that a repeat of the first call would also
            # time out.
            for _ in range(5):
                with pytest.raises(DeadlineError):
                    caller.allocate_pages(3)
        for _ in range(150):
            caller.lock([]).release()
    eventually(lambda: held(client) == (0, 0))


def test_asyncio_gives_back_what_came_while_pandod_stood_still(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            with impatient(worker):
                with stopped(pandod):
                    for _ in range(5):
                        with pytest.raises(DeadlineError):
                            await worker.allocate_pages(3)
                for _ in range(150):
                    await (await worker.lock([])).release()
            await asyncio.to_thread(eventually, lambda: held(client) == (0, 0))

    asyncio.run(run())


def test_asyncio_does_the_same(client, cutter):
    async def run():
        async with AsyncClient(cutter.address, lane=False) as worker:
            match = await worker.match_prefix(
                prompt(2), lock=True, reserve_tokens=2 * PAGE_TOKENS
            )
            first, second = match.reserved_page_ids
            with lost(cutter, worker):
                await worker.insert(prompt(1), [first], lock=match.lock, relock=True)
            with pytest.raises(LockInDoubtError):
                await worker.insert(prompt(1), [second], lock=match.lock, relock=True)
            await worker.insert(
                (), (), lock=match.lock, unlock=True, free_page_ids=[second]
            )
            await asyncio.to_thread(eventually, lambda: held(client) == (0, 0))

    asyncio.run(run())
