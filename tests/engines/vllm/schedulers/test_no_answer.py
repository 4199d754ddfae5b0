"""The copy mode where pandod does not answer: nothing is published in a wrong place, and
nothing stays locked or reserved."""

import contextlib

import pytest
from cutter import Cutter
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.steps import Request, Step, tokens, written
from eventually import eventually
from pando_kv import Client
from pando_kv.vllm.copy_scheduler import CopyScheduler


@pytest.fixture
def cutter(pandod, tmp_path):
    with Cutter(tmp_path / "cutter.sock", pandod.socket) as cutter:
        yield cutter


@pytest.fixture
def client(cutter):
    with Client(cutter.address, name="scheduler", lane=False, away_after=5.0) as client:
        yield client


@pytest.fixture
def scheduler(client):
    return CopyScheduler(client, BLOCK_TOKENS, workers=2)


@contextlib.contextmanager
def unanswered(cutter, client):
    """Calls that it sends meanwhile are lost, and it knows that soon."""
    cutter.deafen()
    presence = client._connection.presence
    presence.away_after = 0.3
    yield
    presence.away_after = 5.0
    cutter.cut()


def begun(scheduler, request, blocks, upto):
    scheduler.matched_tokens(request, 0)
    scheduler.will_load(request, blocks, 0)
    return scheduler.plan(Step(new=[(request, blocks, 0, upto)]))


def nothing_is_held(operator):
    stats = operator.stats()
    return (stats.locks, stats.pages.reserved) == (0, 0)


def test_pages_are_not_published_in_the_place_of_those_before(
    scheduler, client, cutter, operator
):
    """A chunk's insert is lost; the next chunk would be found without it."""
    request = Request("1", tokens(129))
    plan = begun(scheduler, request, [1, 2], 64)
    with unanswered(cutter, client):
        scheduler.take(written(plan))
    eventually(lambda: not client.is_away)
    plan = scheduler.plan(Step(cached=[(request, [3, 4, 5], 64, 65)]))
    scheduler.take(written(plan))
    scheduler.end("1")
    assert operator.match_prefix(tokens(129)[64:]).matched_tokens == 0
    eventually(lambda: nothing_is_held(operator))


def test_what_ends_while_pandod_is_left_alone_leaves_nothing(
    scheduler, client, cutter, operator
):
    requests = [Request(str(i), tokens(65, start=100 * i)) for i in range(4)]
    plans = [begun(scheduler, r, [1, 2, 3], 65) for r in requests]
    with unanswered(cutter, client):
        assert scheduler.matched_tokens(Request("lost", tokens(65)), 0) == 0
        assert client.is_away
        for request, plan in zip(requests, plans, strict=True):
            scheduler.take(written(plan))
            scheduler.end(request.request_id)
    eventually(lambda: nothing_is_held(operator))


def test_what_is_saved_under_a_reset_leaves_nothing(
    scheduler, client, cutter, operator
):
    """The first call that gives back has no answer; the others are put off."""
    requests = [Request(str(i), tokens(65, start=100 * i)) for i in range(4)]
    plans = [begun(scheduler, r, [1, 2, 3], 65) for r in requests]
    for request in requests:
        request.num_computed_tokens = 65
    scheduler.reset()
    with unanswered(cutter, client):
        for request, plan in zip(requests, plans, strict=True):
            scheduler.end(request.request_id)
            scheduler.take(written(plan))
    eventually(lambda: nothing_is_held(operator))


def test_what_pandod_refuses_to_publish_is_freed(scheduler, client, operator):
    request = Request("1", tokens(65))
    plan = begun(scheduler, request, [1, 2, 3], 65)
    client.unlock(scheduler._tracked["1"].lock)
    scheduler.take(written(plan))
    scheduler.end("1")
    eventually(lambda: operator.stats().pages.reserved == 0)
