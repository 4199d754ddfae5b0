"""vLLM's own Scheduler over pages and a disk tier. Evicted pages are loaded while other
requests are scheduled."""

import pytest
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.schedulers.conftest import PAGES, serve_tier
from engines.vllm.start import prompt
from eventually import eventually
from metrics_page import MetricsPage

WAIT_MS = 60_000  # longer than any test waits
TOKENS = prompt(3 * BLOCK_TOKENS + 4, seed=1)
CACHED = 3 * BLOCK_TOKENS


@pytest.fixture
def pandod(tmp_path, disk, http):
    with serve_tier(tmp_path, http, disk) as server:
        yield server


@pytest.fixture
def start(model, pandod):
    started = []

    def make(wait_ms=WAIT_MS, **arguments):
        options = {"pando_wait_ms": wait_ms}
        alone = SchedulerAlone(
            model,
            pandod.address,
            blocks=PAGES,
            options=options,
            **arguments,
        )
        started.append(alone)
        return alone

    yield make
    for alone in started:
        alone.close()


@pytest.fixture
def put_on_disk_alone(operator, http, disk):
    """Returns a function that computes and evicts TOKENS, and stalls the disk."""

    def put(alone):
        alone.add("computed", TOKENS)
        alone.run()
        eventually(lambda: MetricsPage(http).sum("pando_tier_pages") == 3)
        eventually(lambda: operator.stats().locks == 0)
        assert operator.evict(3) == 3
        disk.stall()

    return put


def computed_of(alone, name):
    """Runs a step, and returns how many tokens of the request it computes."""
    return alone.step().get(name, 0)


def computed_by(alone, name):
    """Steps until one computes tokens of the request, and returns how many."""
    computed = []

    def is_scheduled():
        computed.append(computed_of(alone, name))
        return computed[-1]

    eventually(is_scheduled)
    return computed[-1]


def test_who_waits_for_the_disk_holds_up_nobody(
    start, put_on_disk_alone, disk, operator, http
):
    alone = start()
    put_on_disk_alone(alone)
    alone.add("waits", TOKENS)
    alone.add("other", prompt(100, seed=2))
    assert computed_of(alone, "waits") == 0
    if "other" in alone.scheduler.requests:
        assert computed_by(alone, "other") > 0
    assert computed_of(alone, "waits") == 0
    disk.go_on()
    assert computed_by(alone, "waits") == len(TOKENS) - CACHED
    alone.run()
    loaded = MetricsPage(http).sum("pando_prefix_hit_tokens_total", tier="loaded")
    assert loaded == CACHED
    assert operator.stats().locks == 0


def test_a_wait_that_is_over_is_a_miss(start, put_on_disk_alone):
    alone = start(wait_ms=500)
    put_on_disk_alone(alone)
    alone.add("waits", TOKENS)
    assert computed_by(alone, "waits") == 64
    alone.run()


def test_by_default_nobody_waits_and_nothing_is_loaded(
    start, put_on_disk_alone, disk, http
):
    alone = start(wait_ms=0)
    put_on_disk_alone(alone)
    disk.go_on()
    alone.add("computes", TOKENS)
    assert computed_of(alone, "computes") == 64
    alone.run()
    page = MetricsPage(http)
    assert page.sum("pando_tier_copied_pages_total", direction="load") == 0


def test_who_reads_no_cache_waits_for_none(start, put_on_disk_alone):
    """vLLM schedules such a request whatever the connector answers."""
    alone = start()
    put_on_disk_alone(alone)
    request = alone.add("1", TOKENS)
    request.skip_reading_prefix_cache = True
    assert computed_of(alone, "1") == 64
    alone.run()


def test_a_request_that_is_aborted_while_it_waits_leaves_nothing(
    start, put_on_disk_alone, disk, operator
):
    alone = start()
    put_on_disk_alone(alone)
    alone.add("1", TOKENS)
    assert computed_of(alone, "1") == 0
    eventually(lambda: operator.stats().waiting_matches == 1)
    alone.abort("1")
    disk.go_on()
    eventually(lambda: operator.stats().waiting_matches == 0)
    eventually(lambda: operator.stats().locks == 0)


def test_after_a_reset_nobody_waits_for_what_was_before(start, put_on_disk_alone, disk):
    alone = start()
    put_on_disk_alone(alone)
    alone.add("1", TOKENS)
    assert computed_of(alone, "1") == 0
    alone.scheduler.connector.reset_cache()
    assert computed_by(alone, "1") == 64
    alone.run()


def test_a_request_that_was_preempted_is_asked_about_anew(
    start, put_on_disk_alone, disk, operator
):
    alone = start()
    put_on_disk_alone(alone)
    disk.go_on()
    alone.add("1", TOKENS, new=4)
    assert computed_by(alone, "1") == len(TOKENS) - CACHED
    before = operator.stats().counters.matches
    alone.scheduler.reset_prefix_cache(reset_running_requests=True)
    assert computed_by(alone, "1") > 0
    assert operator.stats().counters.matches == before + 2
    alone.run()


def test_who_waits_when_pandod_begins_anew_stops_with_a_sentence(
    start, put_on_disk_alone, pandod, operator
):
    """The engine's memory is no longer the pool after a restart."""
    alone = start()
    put_on_disk_alone(alone)
    alone.add("1", TOKENS)
    assert computed_of(alone, "1") == 0
    generation = operator.generation
    pandod.kill()
    pandod.start()
    eventually(lambda: operator.generation != generation)
    with pytest.raises(RuntimeError, match="the session with pandod is lost"):
        eventually(lambda: alone.step() is None)
