"""Admissions that wait for a page that another worker computes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually
from lanes import needs_lane
from pando_kv import Client, InvalidRequestError, PendingOutcome
from pando_kv.aio import AsyncClient
from prompts import prompt

LONG = 100.0
TRANSPORTS = ["lane", "grpc"]
LANE_SLOTS = 64
TOKENS = prompt(2)


def admit(client, **options):
    return client.match_prefix(TOKENS, lock=True, reserve_tokens=len(TOKENS), **options)


def publish(client, match):
    client.insert(
        [],
        match.reserved_page_ids,
        lock=match.lock,
        prompt_tokens=len(TOKENS),
        unlock=True,
    )


@pytest.fixture
def owner(pandod):
    with Client(pandod.address, name="owner") as client:
        yield client


def _outcome(client, resolve):
    """Returns the answer of an admission that waits until `resolve` is called."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(admit, client, pending_wait=LONG)
        eventually(lambda: client.stats().waiting_matches == 1)
        resolve()
        return waiting.result()


def test_a_published_page_ends_the_wait_and_is_matched(client, owner):
    first = admit(owner)
    match = _outcome(client, lambda: publish(owner, first))
    assert match.pending is PendingOutcome.PUBLISHED
    assert match.matched_tokens == len(TOKENS)
    assert match.page_ids.tolist() == first.reserved_page_ids.tolist()
    match.lock.release()


def test_an_owner_that_releases_its_lock_ends_the_wait(client, owner):
    match = _outcome(client, admit(owner).lock.release)
    assert (match.pending, match.matched_tokens) == (PendingOutcome.GIVEN_UP, 0)
    assert match.reserved_page_ids.size == 2
    match.lock.release()


def test_the_end_of_the_owners_session_ends_the_wait(client, owner):
    lock = admit(owner).lock
    match = _outcome(client, owner.close)
    assert match.pending is PendingOutcome.OWNER_LOST
    assert lock.held
    match.lock.release()


def test_a_wait_may_be_longer_than_the_timeout_of_a_call(pandod, owner):
    first = admit(owner)
    with Client(pandod.address, timeout=0.2) as client:
        match = admit(client, pending_wait=0.5)
        assert match.pending is PendingOutcome.TIMED_OUT
        match.lock.release()
    first.lock.release()


def test_who_does_not_wait_is_told_that_the_page_is_being_computed(client, owner):
    first = admit(owner)
    match = admit(client)
    assert match.pending is PendingOutcome.NOT_AWAITED
    match.lock.release()
    first.lock.release()
    match = admit(client)
    assert match.pending is PendingOutcome.NONE
    match.lock.release()


def test_waiting_without_a_lock_is_refused(client):
    with pytest.raises(InvalidRequestError, match="pending_wait"):
        client.match_prefix(TOKENS, pending_wait=1)


def test_waits_beyond_the_limit_are_refused(client):
    for seconds in (601, 1e9, float("inf")):
        with pytest.raises(InvalidRequestError, match="pending_wait"):
            admit(client, pending_wait=seconds)


@pytest.fixture(params=[pytest.param(True, marks=needs_lane), False], ids=TRANSPORTS)
def with_lane(request):
    """Runs the tests that ask for this fixture on each transport."""
    return request.param


async def _state(client):
    stats = await client.stats()
    return stats.waiting_matches, stats.locks, stats.pages.reserved


async def _reaches(client, state):
    while await _state(client) != state:
        await asyncio.sleep(0)


async def _cancelled(tasks):
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError)


def _run(steps):
    asyncio.run(asyncio.wait_for(steps, 60))


def test_a_cancelled_admission_waits_no_longer(pandod, client, owner, with_lane):
    async def steps():
        async with AsyncClient(pandod.address, lane=with_lane) as waiter:
            assert (waiter.transport == "lane") == with_lane
            waiting = asyncio.create_task(admit(waiter, pending_wait=LONG))
            await _reaches(waiter, (1, 1, 2))
            await _cancelled([waiting])
            # The owner has not published, so only the cancellation can end the wait.
            await _reaches(waiter, (0, 1, 2))

    admit(owner)
    _run(steps())


def test_an_admission_that_is_cancelled_as_its_wait_ends_leaves_nothing(
    pandod, client, owner, with_lane
):
    """pandod may carry out the admission before it hears of the cancellation."""

    async def steps(first):
        async with AsyncClient(pandod.address, lane=with_lane) as waiter:
            waiting = asyncio.create_task(admit(waiter, pending_wait=LONG))
            await _reaches(waiter, (1, 1, 2))
            # The loop does not run during this blocking call.
            publish(owner, first)
            await _cancelled([waiting])
            await _reaches(waiter, (0, 0, 0))

    _run(steps(admit(owner)))


def test_more_cancelled_waits_than_a_lane_has_room_for_leave_nothing(
    pandod, client, owner, with_lane
):
    async def steps():
        async with AsyncClient(pandod.address, lane=with_lane) as waiter:
            waits = [
                asyncio.create_task(admit(waiter, pending_wait=LONG))
                for _ in range(LANE_SLOTS + 8)
            ]
            await _reaches(waiter, (len(waits), 1, 2))
            await _cancelled(waits)
            await _reaches(waiter, (0, 1, 2))
            # The cancelled calls no longer take room on the lane.
            match = await waiter.match_prefix(prompt(1))
            assert match.matched_tokens == 0

    admit(owner)
    _run(steps())
