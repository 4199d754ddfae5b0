"""Several calls with one doorbell, or in one call of gRPC."""

import asyncio
import contextlib
import threading

import pytest
from lanes import needs_lane
from pando_kv import (
    Client,
    InvalidRequestError,
)
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS
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


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "grpc"])
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
