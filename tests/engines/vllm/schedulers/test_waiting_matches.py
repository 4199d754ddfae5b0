"""The copy mode over a disk tier: what was evicted is loaded while the scheduler goes on
with other requests."""

import pytest
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.steps import Request, Step, tokens, written
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pando_kv.vllm.connector import _wait_ms
from pando_kv.vllm.copy_scheduler import CopyScheduler
from stalled_disk import StalledDisk

WAIT = 60.0  # seconds, which no test needs
BLOCKS = [1, 2, 3, 4]
PROMPT = tokens(3 * BLOCK_TOKENS + 4)
OTHER = tokens(3 * BLOCK_TOKENS + 4, start=100)


@pytest.fixture
def disk(tmp_path):
    return StalledDisk(tmp_path)


@pytest.fixture
def http():
    return free_address()


@pytest.fixture
def pandod(tmp_path, disk, http):
    server = serve_pool(
        tmp_path,
        64,
        http=http,
        tier_disk=tmp_path / "tier",
        tier_disk_bytes="16MiB",
        tier_min_load_tokens=BLOCK_TOKENS,
    )
    server.stop()
    server.start(**disk.environment)
    yield server
    disk.go_on()
    server.close()


@pytest.fixture
def start_scheduler(pandod):
    with Client(pandod.address, name="scheduler", timeout=5) as client:
        yield lambda wait=WAIT: CopyScheduler(
            client, BLOCK_TOKENS, workers=2, wait=wait
        )


@pytest.fixture
def on_disk_alone(start_scheduler, operator, http, disk):
    """The prompt was computed, stored and evicted; the disk does not answer now."""
    scheduler = start_scheduler()
    request = Request("computed", PROMPT)
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.will_load(request, 0)
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 0, len(PROMPT))]))
    scheduler.take(written(plan))
    scheduler.end(request.request_id)
    eventually(lambda: MetricsPage(http).sum("pando_tier_pages") == 3)
    eventually(lambda: operator.stats().locks == 0)
    assert operator.evict(3) == 3
    disk.stall()
    return scheduler


def nothing_is_held(operator):
    stats = operator.stats()
    return (stats.locks, stats.pages.reserved) == (0, 0)


def test_who_waits_for_the_disk_holds_up_nobody(on_disk_alone, disk, operator):
    scheduler = on_disk_alone
    waits, other = Request("waits", PROMPT), Request("other", OTHER)
    assert scheduler.matched_tokens(waits, 0) is None
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
    scheduler.will_load(request, 3 * BLOCK_TOKENS)
    plan = scheduler.plan(Step(new=[(request, BLOCKS, 3 * BLOCK_TOKENS, 4)]))
    (load,) = plan.loads.values()
    assert load.block_ids == BLOCKS[:3]
    assert not plan.saves
    scheduler.take(written(plan))
    scheduler.end("1")


def test_a_wait_that_is_over_is_a_miss(on_disk_alone, start_scheduler):
    scheduler = start_scheduler(wait=0.001)
    request = Request("1", PROMPT)
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.end("1")


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


def test_after_a_reset_nobody_waits_for_what_was_before(on_disk_alone, operator):
    scheduler = on_disk_alone
    request = Request("1", PROMPT)
    assert scheduler.matched_tokens(request, 0) is None
    scheduler.reset()
    eventually(lambda: scheduler.matched_tokens(request, 0) == 0)
    scheduler.end("1")


def test_not_more_than_some_wait_at_once(on_disk_alone, disk, operator):
    scheduler = on_disk_alone
    requests = [Request(str(i), PROMPT) for i in range(40)]
    for request in requests:
        assert scheduler.matched_tokens(request, 0) is None
    eventually(lambda: operator.stats().waiting_matches == 32)
    disk.go_on()
    for request in requests:
        eventually(
            lambda request=request: (
                scheduler.matched_tokens(request, 0) == 3 * BLOCK_TOKENS
            )
        )
        scheduler.end(request.request_id)
    eventually(lambda: nothing_is_held(operator))


@pytest.mark.parametrize("value", [-1, 600_001, "5", True, None])
def test_a_wait_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="pando_wait_ms is .*; must be a number"):
        _wait_ms(value, is_zero_copy=False)


def test_a_wait_is_not_for_zero_copy():
    assert _wait_ms(0, is_zero_copy=True) == 0
    with pytest.raises(ValueError, match="together with pando_zero_copy"):
        _wait_ms(5, is_zero_copy=True)
