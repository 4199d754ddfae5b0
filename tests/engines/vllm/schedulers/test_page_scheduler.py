"""vLLM's block pool on a real pandod, without a model."""

from types import SimpleNamespace

import pytest
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.schedulers.conftest import PAGES
from engines.vllm.steps import Request, Step, tokens
from pando_kv import Client
from pando_kv.vllm.pages.scheduler import PageScheduler
from pando_kv.vllm.pages.shared_block_pool import SharedBlockPool

STASH = 2


class Manager:
    """A stand-in for vLLM's KVCacheManager, with the calls that the connector uses."""

    enable_caching = True
    empty_kv_cache_blocks = SimpleNamespace(blocks=((),))

    def __init__(self) -> None:
        pool = self.block_pool = SharedBlockPool.__new__(SharedBlockPool)
        pool.num_gpu_blocks = PAGES
        pool.blocks = [
            SimpleNamespace(block_id=page, ref_cnt=0, is_null=page == 0)
            for page in range(PAGES)
        ]
        self._taken = {}

    def create_kv_cache_blocks(self, blocks):
        return SimpleNamespace(blocks=blocks)

    def get_blocks(self, request_id):
        return SimpleNamespace(blocks=(self._taken.get(request_id, []),))

    def get_block_ids(self, request_id):
        return ([block.block_id for block in self._taken.get(request_id, [])],)

    # The methods below do what vLLM's scheduler does in its steps.

    def take(self, request, found, upto):
        """Takes blocks for the tokens of the request before `upto`."""
        taken = self._taken.setdefault(request.request_id, [])
        if not taken:
            self.block_pool.touch(found.blocks[0])
            taken += found.blocks[0]
        taken += self.block_pool.get_new_blocks(-(-upto // BLOCK_TOKENS) - len(taken))

    def give_back(self, request):
        self.block_pool.free_blocks(self._taken.pop(request.request_id, []))


@pytest.fixture
def manager():
    return Manager()


@pytest.fixture
def scheduler(pandod, manager):
    with Client(pandod.address, name="scheduler", timeout=5) as client:
        scheduler = PageScheduler(client, BLOCK_TOKENS, STASH)
        scheduler.bind(manager)
        yield scheduler


def request(name, count, **fields):
    return Request(name, tokens(count), skip_reading_prefix_cache=False, **fields)


def run(scheduler, manager, request):
    """Runs one step with all tokens of the request; returns how many were cached."""
    found, cached, _ = manager.get_computed_blocks(request)
    manager.take(request, found, request.num_tokens)
    scheduler.plan(Step())
    request.num_computed_tokens = request.num_tokens
    scheduler.finish_step()
    return cached


def end(scheduler, manager, request):
    scheduler.end(request.request_id, manager.get_block_ids(request.request_id)[0])
    manager.give_back(request)


def test_what_was_promised_is_kept_until_it_is_taken(scheduler, manager):
    """vLLM schedules the request a step after its look-up, in two chunks."""
    waiting = request("1", 40 * BLOCK_TOKENS)
    manager.get_computed_blocks(waiting)
    for _ in range(2):
        scheduler.plan(Step())
        found, _, _ = manager.get_computed_blocks(waiting)
        assert manager.block_pool.get_num_free_blocks() >= 40
    manager.take(waiting, found, 20 * BLOCK_TOKENS)
    scheduler.plan(Step())
    assert manager.block_pool.get_num_free_blocks() >= 20
    manager.take(waiting, found, 40 * BLOCK_TOKENS)
    scheduler.plan(Step())
    assert manager.block_pool.get_num_free_blocks() <= 2 * STASH


def test_what_another_request_took_is_asked_for_again(scheduler, manager):
    waiting, running = request("1", 20 * BLOCK_TOKENS), request("2", 100)
    manager.get_computed_blocks(waiting)
    manager.take(running, Manager.empty_kv_cache_blocks, 20 * BLOCK_TOKENS)
    scheduler.plan(Step())
    manager.get_computed_blocks(waiting)
    assert manager.block_pool.get_num_free_blocks() >= 20


def test_prompts_of_embeddings_get_their_pages(scheduler, manager):
    waiting = request("1", 20 * BLOCK_TOKENS, prompt_embeds=object())
    found, cached, _ = manager.get_computed_blocks(waiting)
    assert cached == 0
    assert manager.block_pool.get_num_free_blocks() >= 20


def test_a_request_that_a_reset_preempts_keeps_its_lock(scheduler, manager, operator):
    """The request is preempted and begins again in one step."""
    first = request("1", 100)
    run(scheduler, manager, first)
    end(scheduler, manager, first)
    again = request("2", 100)
    assert run(scheduler, manager, again) == 96
    again.num_preemptions, again.num_computed_tokens = 1, 0
    manager.give_back(again)
    found, cached, _ = manager.get_computed_blocks(again)
    assert cached == 96
    manager.take(again, found, 100)
    scheduler.plan(Step(preempted=["2"]))
    assert operator.stats().locks == 1
    end(scheduler, manager, again)
    assert operator.stats().locks == 0


def test_after_a_reset_nothing_of_before_is_found(scheduler, manager, operator):
    first = request("1", 100)
    run(scheduler, manager, first)
    end(scheduler, manager, first)
    waiting = request("2", 100)
    assert manager.get_computed_blocks(waiting)[1] == 96
    scheduler.reset()
    assert operator.stats().locks == 0
    assert manager.get_computed_blocks(waiting)[1] == 0
    end(scheduler, manager, waiting)


def test_after_a_reset_what_runs_publishes_nothing_more(scheduler, manager, operator):
    running = request("1", 150)
    found, _, _ = manager.get_computed_blocks(running)
    manager.take(running, found, 150)
    scheduler.plan(Step())
    running.num_computed_tokens = 64
    scheduler.reset()
    running.num_computed_tokens = 150
    end(scheduler, manager, running)
    assert operator.match_prefix(tokens(150)).matched_tokens == 0
    assert operator.stats().locks == 0
