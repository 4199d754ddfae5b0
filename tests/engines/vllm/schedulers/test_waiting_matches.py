"""The copy mode over a disk tier: what was evicted is loaded while the scheduler goes on
with other requests."""

import pytest
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.schedulers.conftest import serve_tier
from engines.vllm.steps import Request, Step, tokens, written
from eventually import eventually
from metrics_page import MetricsPage
from pando_kv import Client
from pando_kv.vllm.copy_scheduler import CopyScheduler

WAIT = 60.0  # seconds, which no test needs
MOST = 32  # that wait at once
BLOCKS = [1, 2, 3, 4]
PROMPT = tokens(3 * BLOCK_TOKENS + 4)
OTHER = tokens(3 * BLOCK_TOKENS + 4, start=100)


@pytest.fixture
def pandod(tmp_path, disk, http):
    with serve_tier(tmp_path, http, disk) as server:
        yield server


@pytest.fixture
def client(pandod):
    with Client(pandod.address, name="scheduler", timeout=5) as client:
        yield client


@pytest.fixture
def start_scheduler(client):
    return lambda wait=WAIT: CopyScheduler(client, BLOCK_TOKENS, workers=2, wait=wait)


@pytest.fixture
def on_disk_alone(start_scheduler, operator, http, disk):
    """The prompt was computed, stored and evicted; the disk does not answer now."""
    scheduler = start_scheduler()
    request = Request("computed", PROMPT)
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.will_load(request, BLOCKS, 0)
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 0, len(PROMPT))]))
    scheduler.take(written(plan))
    scheduler.end(request.request_id)
    eventually(lambda: MetricsPage(http).sum("pando_tier_pages") == 3)
    eventually(lambda: operator.stats().locks == 0)
    assert operator.evict(3) == 3
    disk.stall()
    return scheduler


def start_anew(pandod, *clients):
    """Returns once all of them have new sessions."""
    before = [client.generation for client in clients]
    pandod.start()
    for client, generation in zip(clients, before, strict=True):
        eventually(lambda c=client, g=generation: c.generation != g)


def nothing_is_held(operator):
    stats = operator.stats()
    return (stats.locks, stats.pages.reserved) == (0, 0)


def test_who_waits_for_the_disk_holds_up_nobody(on_disk_alone, disk, operator):
    scheduler = on_disk_alone
    waits, other = Request("waits", PROMPT), Request("other", OTHER)
    assert scheduler.matched_tokens(waits, 0) is None
    scheduler.plan(Step())
    eventually(lambda: scheduler.matched_tokens(other, 0) == 0)
    assert scheduler.matched_tokens(waits, 0) is None
    disk.go_on()
    eventually(lambda: scheduler.matched_tokens(waits, 0) == 3 * BLOCK_TOKENS)
    scheduler.end("waits")
    scheduler.end("other")
    eventually(lambda: nothing_is_held(operator))


def test_what_is_loaded_is_copied_as_any_match(on_disk_alone, disk):
    scheduler = on_disk_alone
    disk.go_on()
    request = Request("1", PROMPT)
    eventually(lambda: scheduler.matched_tokens(request, 0) is not None)
    scheduler.will_load(request, BLOCKS, 3 * BLOCK_TOKENS)
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 3 * BLOCK_TOKENS, 4)]))
    (load,) = plan.loads.values()
    assert load.block_ids == BLOCKS[:3]
    assert not plan.saves
    scheduler.take(written(plan))
    scheduler.end("1")


def test_a_wait_that_is_over_is_a_miss(on_disk_alone, start_scheduler):
    scheduler = start_scheduler(wait=2)
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.end("1")


def test_who_reads_no_cache_waits_for_none(on_disk_alone):
    """vLLM schedules it, whatever it is told."""
    request = Request("1", PROMPT, skip_reading_prefix_cache=True)
    assert on_disk_alone.matched_tokens(request, 0) == 0
    on_disk_alone.end("1")


def test_a_request_that_is_aborted_while_it_waits_leaves_nothing(
    on_disk_alone, disk, operator
):
    scheduler = on_disk_alone
    assert scheduler.matched_tokens(Request("1", PROMPT), 0) is None
    eventually(lambda: operator.stats().waiting_matches == 1)
    scheduler.end("1")
    disk.go_on()
    eventually(lambda: operator.stats().waiting_matches == 0)
    eventually(lambda: nothing_is_held(operator))


def test_a_request_that_is_aborted_before_it_is_told_leaves_nothing(
    on_disk_alone, disk, operator
):
    scheduler = on_disk_alone
    assert scheduler.matched_tokens(Request("1", PROMPT), 0) is None
    disk.go_on()
    eventually(lambda: operator.stats().pages.protected == 3)
    scheduler.end("1")
    eventually(lambda: nothing_is_held(operator))


def test_after_a_reset_nobody_waits_for_what_was_before(on_disk_alone, disk, operator):
    scheduler = on_disk_alone
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    scheduler.reset()
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.end("1")
    disk.go_on()
    eventually(lambda: nothing_is_held(operator))


def test_who_finds_too_many_waiting_does_not_wait(on_disk_alone, disk, operator):
    scheduler = on_disk_alone
    for i in range(MOST):
        assert scheduler.matched_tokens(Request(str(i), PROMPT), 0) is None
    eventually(lambda: operator.stats().waiting_matches == MOST)
    assert scheduler.matched_tokens(Request("one more", PROMPT), 0) == 0
    # Those that are aborted wait on, without anybody.
    for i in range(MOST):
        scheduler.end(str(i))
    assert scheduler.matched_tokens(Request("another", PROMPT), 0) == 0
    disk.go_on()
    scheduler.end("one more")
    scheduler.end("another")
    eventually(lambda: nothing_is_held(operator))


def test_a_pandod_that_is_killed_is_not_waited_for(on_disk_alone, pandod, operator):
    scheduler = on_disk_alone
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    pandod.kill()
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.end("1")
    start_anew(pandod, operator)


def test_pages_of_a_session_that_is_over_are_not_loaded(
    on_disk_alone, pandod, client, disk, operator
):
    """Others may have them by now."""
    scheduler = on_disk_alone
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    disk.go_on()
    eventually(lambda: scheduler.matched_tokens(request, 0) == 3 * BLOCK_TOKENS)
    scheduler.will_load(request, BLOCKS, 3 * BLOCK_TOKENS)
    pandod.kill()
    start_anew(pandod, client, operator)
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 3 * BLOCK_TOKENS, 4)]))
    assert not plan.loads
    assert [load.block_ids for load in plan.lost_loads.values()] == [BLOCKS[:3]]


def test_a_plan_without_a_session_loads_nothing(
    on_disk_alone, pandod, client, disk, operator
):
    scheduler = on_disk_alone
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    disk.go_on()
    eventually(lambda: scheduler.matched_tokens(request, 0) == 3 * BLOCK_TOKENS)
    scheduler.will_load(request, BLOCKS, 3 * BLOCK_TOKENS)
    client.close()
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 3 * BLOCK_TOKENS, 4)]))
    assert not plan.loads
    assert not plan.saves
    assert [load.block_ids for load in plan.lost_loads.values()] == [BLOCKS[:3]]
