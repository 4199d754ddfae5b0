"""A load that fails, in the copy mode: its blocks are computed anew, and nothing that was
computed from them is published."""

import contextlib

import pytest
import torch
from engines.models import LAYERS
from engines.vllm.faults import another_pool, device_without_memory
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.schedulers.conftest import PAGES
from engines.vllm.steps import Request, Step, tokens
from pando_kv import Client
from pando_kv.vllm.copy_plan import Copy, CopyPlan
from pando_kv.vllm.copy_scheduler import CopyScheduler
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages


@pytest.fixture
def scheduler(pandod):
    with Client(pandod.address, name="scheduler") as client:
        yield CopyScheduler(client, BLOCK_TOKENS, workers=1)


@pytest.fixture
def worker(pandod):
    with Client(pandod.address, name="worker") as client:
        worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), PAGES)
        shape = (PAGES, BLOCK_BYTES // 4)
        worker.register(
            {f"layer.{n}": torch.zeros(shape) for n in range(LAYERS)}, BLOCK_TOKENS
        )
        yield worker


def run(scheduler, worker, plan, fault=contextlib.nullcontext):
    """A step of vLLM; returns the blocks that it has to compute anew."""
    with fault(plan):
        worker.load(plan)
    worker.save(plan)
    bad = worker.take_bad_blocks()
    scheduler.take(worker.report())
    return bad


@pytest.mark.parametrize("fault", [another_pool, device_without_memory])
def test_what_is_computed_from_a_load_that_failed_is_not_published(
    scheduler, worker, operator, fault
):
    first = Request("1", tokens(100))
    scheduler.matched_tokens(first, 0)
    scheduler.will_load(first, [1, 2, 3, 4], 0)
    plan = scheduler.plan(Step(new=[(first, [1, 2, 3, 4], 0, 100)]))
    assert run(scheduler, worker, plan) == set()
    scheduler.end("1")
    assert operator.match_prefix(tokens(170)).matched_tokens == 96

    second = Request("2", tokens(170))
    blocks = [5, 6, 7, 8, 9, 10]
    scheduler.will_load(second, blocks, scheduler.matched_tokens(second, 0))
    plan = scheduler.plan(Step(new=[(second, blocks, 96, 74)]))
    assert plan.saves
    assert run(scheduler, worker, plan, fault) == {5, 6, 7}
    assert operator.match_prefix(tokens(170)).matched_tokens == 96

    # vLLM computes all of it; now it is right, and saved.
    plan = scheduler.plan(Step(cached=[(second, [], 0, 170)]))
    assert run(scheduler, worker, plan) == set()
    scheduler.end("2")
    assert operator.match_prefix(tokens(170)).matched_tokens == 160
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_what_the_next_step_computes_from_a_failed_load_is_not_published(
    scheduler, worker, operator
):
    """With asynchronous scheduling that step is planned before the failure is known."""
    first = Request("1", tokens(100))
    scheduler.matched_tokens(first, 0)
    plan = scheduler.plan(Step(new=[(first, [1, 2, 3, 4], 0, 100)]))
    assert run(scheduler, worker, plan) == set()
    scheduler.end("1")

    second, third = Request("2", tokens(128)), Request("3", tokens(40, start=300))
    blocks = [5, 6, 7, 8]
    scheduler.will_load(second, blocks, scheduler.matched_tokens(second, 0))
    scheduler.matched_tokens(third, 0)
    new = [(second, blocks, 96, 15), (third, [9, 10], 0, 40)]
    failing = scheduler.plan(Step(new=new))
    following = scheduler.plan(Step(cached=[(second, [], 111, 17)]))
    assert [copy.request_id for copy in failing.saves.values()] == ["3"]
    assert [copy.request_id for copy in following.saves.values()] == ["2"]
    assert run(scheduler, worker, failing, another_pool) == {5, 6, 7}
    assert run(scheduler, worker, following) == set()
    assert operator.match_prefix(tokens(128)).matched_tokens == 96
    scheduler.end("2")
    scheduler.end("3")
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_what_another_computes_from_blocks_of_a_failed_load_is_not_published(
    scheduler, worker, operator
):
    """vLLM's own prefix cache gives it blocks of the one that loads, in the same step."""
    first = Request("1", tokens(100))
    scheduler.matched_tokens(first, 0)
    plan = scheduler.plan(Step(new=[(first, [1, 2, 3, 4], 0, 100)]))
    assert run(scheduler, worker, plan) == set()
    scheduler.end("1")

    second, third = Request("2", tokens(100)), Request("3", tokens(170))
    blocks = [5, 6, 7, 8]
    scheduler.will_load(second, blocks, scheduler.matched_tokens(second, 0))
    assert scheduler.matched_tokens(third, 96) == 0
    sharing = [*blocks[:3], 9, 10, 11]
    new = [(second, blocks, 96, 4), (third, sharing, 96, 74)]
    plan = scheduler.plan(Step(new=new))
    (save,) = plan.saves.values()
    assert save.request_id == "3"
    with device_without_memory(plan):
        worker.load(plan)
    worker.save(plan)
    assert worker.take_bad_blocks() == {5, 6, 7}
    scheduler.take(worker.report())
    assert operator.match_prefix(tokens(170)).matched_tokens == 96

    # vLLM computes both anew.
    again = [(second, [], 0, 100), (third, [], 96, 74)]
    assert run(scheduler, worker, scheduler.plan(Step(cached=again))) == set()
    scheduler.end("2")
    scheduler.end("3")
    assert operator.match_prefix(tokens(170)).matched_tokens == 160
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_blocks_whose_pages_are_lost_are_computed_anew(worker):
    worker.load(CopyPlan(lost_loads={1: Copy("1", [1, 2], [5, 6])}))
    assert worker.take_bad_blocks() == {5, 6}
