"""Requests that an engine leaves in its queue while a disk tier loads their prompts."""

import os
import signal

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage
from pando_kv import Client
from pando_kv._side_calls import wait_seconds
from pando_kv._tier_waits import TierWaits
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod
from tiered import PAGES, PROMPT, stalled_tier

# No test waits this long.
SECONDS = 60.0
# At most so many requests wait at once.
MOST = 32


@pytest.fixture
def stallable(tmp_path):
    """Yields a pandod with a disk tier, and a way to stall its disk."""

    def start(**options):
        server = Pandod(tmp_path, **options)
        servers.append(server)
        server.start()
        return server

    servers = []
    with stalled_tier(start, tmp_path, tier_min_load_tokens=PAGE_TOKENS) as made:
        yield made
    for server in servers:
        server.close()


@pytest.fixture
def tiered(stallable):
    return stallable[0]


@pytest.fixture
def disk(stallable):
    return stallable[1]


@pytest.fixture
def client(tiered):
    with Client(tiered.pandod.address, name="scheduler") as client:
        yield client


@pytest.fixture
def on_disk_alone(tiered, disk):
    """Stores and evicts the prompt, then stalls the disk."""
    tiered.store(PROMPT, seed=1)
    disk.stall()


class Asking:
    """A scheduler that asks in each step about the requests in its queue."""

    def __init__(self, client, seconds=SECONDS):
        self.waits = TierWaits(client, seconds)
        self.asked = 0

    def holds(self, request_id="1", tokens=PROMPT):
        def prompt():
            self.asked += 1
            return tokens, None

        self.waits.begin_step()
        return self.waits.holds(request_id, prompt)


class Engine:
    """A scheduler that runs its requests one after the other, each for some steps."""

    STEPS = 5

    def __init__(self, client, prompts, **options):
        self.asking = Asking(client, **options)
        self.client = client
        self.queue = {str(i): prompt for i, prompt in enumerate(prompts)}
        self.cached = {}
        self.running = None

    def step(self):
        self.asking.waits.keep(self.queue)
        for request_id, prompt in list(self.queue.items()):
            if not self.asking.holds(request_id, prompt) and self.running is None:
                self.admit(request_id, prompt)
        if self.running is not None:
            match, steps = self.running
            self.running = (match, steps - 1) if steps else self.finish(match)
        return not self.queue and self.running is None

    def admit(self, request_id, prompt):
        match = self.client.match_prefix(
            prompt, lock=True, reserve_tokens=prompt.size + PAGE_TOKENS
        )
        self.cached[request_id] = match.matched_tokens
        del self.queue[request_id]
        self.running = (match, self.STEPS)

    def finish(self, match):
        self.client.free_pages(match.reserved_page_ids)
        self.client.unlock(match.lock)


def nothing_is_held(client):
    stats = client.stats()
    return (stats.locks, stats.waiting_matches, stats.pages.reserved) == (0, 0, 0)


def hit_tokens(tiered):
    page = MetricsPage(tiered.http)
    return page.by("tier", "pando_prefix_hit_tokens_total")


def test_a_request_is_held_until_its_prompt_is_loaded(
    on_disk_alone, tiered, disk, client
):
    asking = Asking(client)
    assert asking.holds()
    assert asking.waits.is_held("1")
    eventually(lambda: not asking.holds("2", PROMPT + 1000))
    disk.go_on()
    eventually(lambda: not asking.holds())
    assert not asking.waits.is_held("1")
    # The prompt stays locked until the request is admitted.
    assert client.stats().locks == 1
    asking.waits.admitted("1")
    assert not asking.holds()
    eventually(lambda: nothing_is_held(client))
    assert sum(hit_tokens(tiered).values()) == 0
    assert client.match_prefix(PROMPT).matched_tokens == PROMPT.size
    assert hit_tokens(tiered) == {"device": 0, "loaded": PROMPT.size}


@pytest.mark.parametrize("is_cached", [False, True], ids=["unknown", "cached"])
def test_what_the_disk_has_nothing_to_add_to_is_one_call(
    is_cached, tiered, disk, client
):
    if is_cached:
        tiered.cache(PROMPT, seed=1)
    disk.stall()
    before = client.stats().counters.matches
    asking = Asking(client)
    eventually(lambda: not asking.holds())
    assert client.stats().counters.matches == before + 1
    # The cached prompt is locked, so loads for other requests cannot evict it.
    assert client.stats().locks == is_cached
    asking.waits.admitted("1")
    assert nothing_is_held(client)
    assert not asking.holds()
    assert asking.asked == 1


def test_a_request_of_which_a_part_is_cached_is_held_for_the_rest(tiered, disk, client):
    tiered.store(PROMPT, seed=1)
    cached = 2 * PAGES // 3
    client.insert(PROMPT[: cached * PAGE_TOKENS], client.allocate_pages(cached))
    disk.stall()
    asking = Asking(client)
    assert asking.holds()
    assert asking.holds("another one, for the same load")
    disk.go_on()
    eventually(lambda: not asking.holds())
    assert client.match_prefix(PROMPT).matched_tokens == PROMPT.size


@pytest.mark.parametrize("is_on_disk", [False, True], ids=["nowhere", "on disk"])
def test_what_another_worker_computes_is_not_waited_for(is_on_disk, tiered, client):
    """The other worker may publish only at the end of a long answer."""
    if is_on_disk:
        tiered.store(PROMPT, seed=1)
    match = client.match_prefix(PROMPT, lock=True, reserve_tokens=PROMPT.size)
    asking = Asking(client)
    eventually(lambda: not asking.holds())
    client.free_pages(match.reserved_page_ids)
    client.unlock(match.lock)


def test_without_a_wait_nothing_is_asked(on_disk_alone, client):
    asking = Asking(client, seconds=0)
    assert not asking.holds()
    assert asking.asked == 0


def test_nobody_is_held_longer_than_it_may_be(on_disk_alone, client):
    asking = Asking(client, seconds=1.0)
    assert asking.holds()
    eventually(lambda: not asking.holds())


def test_a_pandod_that_hangs_holds_nobody_longer(on_disk_alone, tiered, client):
    os.kill(tiered.pandod.pid, signal.SIGSTOP)
    try:
        asking = Asking(client, seconds=1.0)
        assert asking.holds()
        eventually(lambda: not asking.holds())
    finally:
        os.kill(tiered.pandod.pid, signal.SIGCONT)


def test_a_pandod_that_is_killed_is_not_waited_for(on_disk_alone, tiered, client):
    asking = Asking(client)
    assert asking.holds()
    eventually(lambda: client.stats().waiting_matches == 1)
    tiered.pandod.kill()
    eventually(lambda: not asking.holds())


def test_a_request_that_is_forgotten_leaves_nothing_and_may_wait_anew(
    on_disk_alone, disk, client
):
    asking = Asking(client)
    assert asking.holds()
    asking.waits.forget("1")
    assert not asking.waits.is_held("1")
    assert asking.holds()
    asking.waits.keep({"another"})
    assert not asking.waits.is_held("1")
    disk.go_on()
    eventually(lambda: nothing_is_held(client))
    assert client.match_prefix(PROMPT).matched_tokens == PROMPT.size


def test_who_finds_too_many_waiting_waits_once_there_is_room(
    on_disk_alone, disk, client
):
    asking = Asking(client)
    for i in range(MOST):
        assert asking.holds(str(i))
    eventually(lambda: client.stats().waiting_matches == MOST)
    assert not asking.holds("one more")
    disk.go_on()
    eventually(lambda: not any(asking.holds(str(i)) for i in range(MOST)))
    asking.waits.keep({"one more"})
    eventually(lambda: nothing_is_held(client))
    assert client.evict(PAGES) == PAGES
    disk.stall()
    eventually(lambda: asking.holds("one more"))


def test_loads_do_not_evict_each_other(tiered, client):
    """The prompts on disk are twice as large as the pool together."""
    pages = POOL_PAGES // 4
    prompts = [np.arange(pages * PAGE_TOKENS) + 10_000 * i for i in range(8)]
    for i, tokens in enumerate(prompts):
        tiered.store(tokens, seed=i)
    engine = Engine(client, prompts)
    eventually(engine.step)
    whole = pages * PAGE_TOKENS
    assert list(engine.cached.values()) == [whole] * len(prompts)
    eventually(lambda: engine.step() and nothing_is_held(client))


def test_no_more_is_held_than_half_of_the_pool(tiered, client):
    """The other requests stay in the queue until an earlier request is admitted."""
    pages = POOL_PAGES // 4
    prompts = [np.arange(pages * PAGE_TOKENS) + 10_000 * i for i in range(5)]
    for i, tokens in enumerate(prompts):
        tiered.store(tokens, seed=i)
    asking = Asking(client)

    def held():
        return [asking.holds(str(i), tokens) for i, tokens in enumerate(prompts)]

    eventually(lambda: held() == [False, False, True, True, True])
    assert client.stats().pages.protected == 2 * pages
    # A request that no tier can serve does not stay in the queue with them.
    eventually(lambda: not asking.holds("unknown", prompts[0] + 5_000))
    asking.waits.admitted("0")
    eventually(lambda: held() == [False, False, False, True, True])
    assert client.stats().pages.protected == 2 * pages


def test_prompts_that_begin_alike_are_held_together(tiered, client):
    pages = POOL_PAGES // 4
    tokens = np.arange(pages * PAGE_TOKENS)
    tiered.store(tokens, seed=1)
    asking = Asking(client)
    names = [str(i) for i in range(4)]
    eventually(lambda: not any(asking.holds(name, tokens) for name in names))
    assert client.stats().pages.protected == pages
    asking.waits.keep(())
    eventually(lambda: nothing_is_held(client))


def test_what_nobody_admits_is_held_no_longer_than_it_may_wait(tiered, client):
    tiered.store(PROMPT, seed=1)
    asking = Asking(client, seconds=1.0)
    eventually(lambda: not asking.holds())
    eventually(lambda: not asking.holds() and nothing_is_held(client))


@pytest.mark.parametrize("value", [-1, 600_001, float("nan"), "5", True, None])
def test_a_wait_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="wait_ms is .*; must be a number from 0 to"):
        wait_seconds("wait_ms", value)
    assert wait_seconds("wait_ms", 1500) == 1.5
