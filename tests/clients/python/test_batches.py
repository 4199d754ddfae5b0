"""Several calls sent with one doorbell of a lane, or in one gRPC call."""

import asyncio
import contextlib
import threading

import pytest
from eventually import eventually
from interrupted import interrupted_when
from lanes import needs_lane
from pando_kv import (
    Client,
    InvalidRequestError,
)
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS, serving
from prompts import admit_and_publish, prompt

pytestmark = needs_lane

LONG = 100.0


def test_the_calls_of_a_batch_are_made_in_order_with_an_answer_each(caller):
    with caller.batch() as batch:
        pages = batch.allocate_pages(2)
        bad = batch.free_pages([0])
        match = batch.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        with pytest.raises(RuntimeError, match="not sent"):
            pages.result()
    with pytest.raises(InvalidRequestError):
        bad.result()
    taken = match.result()
    assert len(pages.result()) == 2
    with caller.batch() as batch:
        done = batch.insert(
            prompt(1), taken.reserved_page_ids, lock=taken.lock, unlock=True
        )
        batch.free_pages(pages.result())
        again = batch.match_prefix(prompt(1))
        lock = batch.lock(prompt(1))
    assert done.result().existing_tokens == 0
    assert again.result().matched_tokens == PAGE_TOKENS
    with caller.batch() as batch:
        released = batch.unlock(lock.result())
        nothing = batch.unlock(lock.result())
    assert released.result() is nothing.result() is None
    pages = caller.gauges().pages
    assert (pages.reserved, pages.protected, pages.evictable) == (0, 0, 1)


def test_a_batch_may_be_larger_than_a_lane_and_a_call_of_grpc(caller):
    with caller.batch() as batch:
        answers = [batch.match_prefix(prompt(1, i)) for i in range(600)]
    assert [answer.result().matched_tokens for answer in answers] == [0] * 600


def test_a_call_of_a_batch_may_wait(pandod, caller):
    with Client(pandod.address) as owner:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        threading.Timer(0.1, first.lock.release).start()
        with caller.batch() as batch:
            waiting = batch.match_prefix(prompt(1), lock=True, pending_wait=LONG)
            other = batch.match_prefix(prompt(2))
        assert waiting.result().pending.name == "GIVEN_UP"
        assert other.result().matched_tokens == 0
        waiting.result().lock.release()


def test_calls_that_have_begun_are_waited_for_by_who_asks(caller):
    batch = caller.batch()
    pages, bad = batch.allocate_pages(2), batch.free_pages([0])
    batch.begin()
    more = batch.allocate_pages(3)
    batch.begin()
    assert len(more.result()) == 3
    assert len(pages.result()) == len(pages.result()) == 2
    for _ in range(2):
        with pytest.raises(InvalidRequestError):
            bad.result()


def test_who_begins_a_batch_goes_on_while_a_call_waits(pandod, client):
    with Client(pandod.address) as owner:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        batch = client.batch()
        waiting = batch.match_prefix(prompt(1), lock=True, pending_wait=LONG)
        batch.begin()
        eventually(lambda: client.stats().waiting_matches == 1)
        first.lock.release()
        waiting.result().lock.release()


def test_a_batch_that_is_given_up_sends_nothing(caller):
    with caller.lock([]) as lock:
        with contextlib.suppress(ZeroDivisionError), caller.batch() as batch:
            pages = batch.allocate_pages(1)
            batch.unlock(lock)
            raise ZeroDivisionError
        assert lock.held
        with pytest.raises(RuntimeError, match="not sent"):
            pages.result()
    assert caller.gauges().pages.reserved == 0


def test_a_handle_that_is_gone_costs_a_call_of_a_batch_nothing(caller):
    done = admit_and_publish(caller, prompt(2))
    caller.evict(2)
    with caller.batch() as batch:
        match = batch.match_prefix(prompt(3), after=done.handle)
    assert (match.result().matched_tokens, match.result().first_page) == (0, 0)


TRANSPORTS = pytest.mark.parametrize("lane", [True, False], ids=["lane", "grpc"])


def test_a_value_that_does_not_fit_costs_the_other_calls_nothing(caller):
    lock = caller.lock([])
    with caller.batch() as batch:
        unlocked = batch.unlock(lock)
        bad = batch.match_prefix(prompt(1), max_tokens=-1)
        pages = batch.allocate_pages(1)
    assert unlocked.result() is None
    with pytest.raises(ValueError, match="max_tokens is -1"):
        bad.result()
    caller.free_pages(pages.result())
    assert caller.stats().locks == 0


def test_a_lock_stays_held_when_a_value_beside_it_does_not_fit(caller):
    with caller.lock([]) as lock, caller.batch() as batch:
        bad = batch.insert([], [], lock=lock, unlock=True, priority=-(2**40))
        batch.send()
        with pytest.raises(ValueError, match="priority"):
            bad.result()
        assert lock.held
    assert caller.stats().locks == 0


@TRANSPORTS
def test_tasks_keep_a_lock_when_a_value_beside_it_does_not_fit(pandod, client, lane):
    async def run():
        async with AsyncClient(pandod.address, lane=lane) as worker:
            lock = await worker.lock([])
            with pytest.raises(ValueError, match="priority"):
                await worker.insert([], [], lock=lock, unlock=True, priority=-(2**40))
            assert lock.held
            async with worker.batch() as batch:
                unlocked = batch.unlock(lock)
                bad = batch.match_prefix(prompt(1), max_tokens=-1)
            assert unlocked.result() is None
            with pytest.raises(ValueError, match="max_tokens is -1"):
                bad.result()
            assert client.stats().locks == 0

    asyncio.run(run())


def _add_a_wait_and_more(batch) -> None:
    batch.match_prefix(prompt(1), lock=True, reserve_tokens=64, pending_wait=LONG)
    for i in range(3):
        batch.match_prefix(prompt(2, 1000 * i), lock=True, reserve_tokens=64)


def _nothing_is_left(client) -> bool:
    stats = client.stats()
    return (stats.locks, stats.pages.reserved, stats.waiting_matches) == (0, 0, 0)


@TRANSPORTS
def test_what_a_batch_of_a_cancelled_task_brought_is_given_back(pandod, client, lane):
    async def run():
        async with AsyncClient(pandod.address, lane=lane) as worker:

            async def send():
                async with worker.batch() as batch:
                    _add_a_wait_and_more(batch)

            first = client.match_prefix(
                prompt(1), lock=True, reserve_tokens=PAGE_TOKENS
            )
            task = asyncio.create_task(send())
            while client.stats().waiting_matches == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            client.free_pages(first.reserved_page_ids)
            first.lock.release()
            await asyncio.to_thread(eventually, lambda: _nothing_is_left(client))

    asyncio.run(run())


def test_what_an_interrupted_batch_brought_is_given_back(pandod, client, caller):
    first = client.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    with interrupted_when(lambda: client.stats().waiting_matches == 1):
        with caller.batch() as batch:
            _add_a_wait_and_more(batch)
    client.free_pages(first.reserved_page_ids)
    first.lock.release()
    eventually(lambda: _nothing_is_left(client))


def test_a_call_that_does_not_fit_on_a_lane_is_not_overtaken(tmp_path):
    with (
        serving(tmp_path, lane_bytes=8192, pool_pages=4096) as pandod,
        Client(pandod.address) as client,
    ):
        assert client.transport == "lane"
        pages = client.allocate_pages(4095)
        for _ in range(100):
            with client.batch() as batch:
                freed = batch.free_pages(pages)
                one = batch.allocate_pages(1)
                rest = batch.allocate_pages(4094)
            assert freed.result() is None
            pages = [*one.result(), *rest.result()]


@TRANSPORTS
def test_tasks_send_batches_too(pandod, client, lane):
    async def run():
        async with AsyncClient(pandod.address, lane=lane) as worker:
            async with worker.batch() as batch:
                pages = batch.allocate_pages(2)
                bad = batch.allocate_pages(0)
            with pytest.raises(InvalidRequestError):
                bad.result()
            await worker.free_pages(pages.result())

    asyncio.run(run())
