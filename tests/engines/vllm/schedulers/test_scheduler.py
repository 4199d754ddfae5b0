"""The connector in vLLM's scheduler, without a model: what a request's way through it
leaves in Pando. The cases are those of vLLM's own connectors' tests."""

from types import SimpleNamespace

import numpy as np
import pytest
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.steps import Request, Step, tokens, written
from pando_kv import Client, Namespace
from pando_kv.vllm.copy_plan import CopyReport
from pando_kv.vllm.copy_scheduler import CopyScheduler
from pando_kv.vllm.identity import Tokens, can_be_cached, namespace_of


@pytest.fixture
def scheduler(pandod):
    with Client(pandod.address, name="scheduler", away_after=5.0) as client:
        yield CopyScheduler(client, BLOCK_TOKENS, workers=2)


def serve(scheduler, request, blocks):
    """All of a request in one step, saved and published."""
    matched = scheduler.matched_tokens(request, 0)
    scheduler.will_load(request, blocks, matched)
    plan = scheduler.plan(
        Step(new=[(request, blocks, matched, request.num_tokens - matched)])
    )
    scheduler.take(written(plan))
    scheduler.end(request.request_id)
    return matched, plan


def test_what_one_request_computed_the_next_one_loads(scheduler, operator):
    first = Request("1", tokens(100))
    matched, plan = serve(scheduler, first, [1, 2, 3, 4])
    assert matched == 0
    assert [copy.block_ids for copy in plan.saves.values()] == [[1, 2, 3]]
    (saved,) = plan.saves.values()

    matched, plan = serve(scheduler, Request("2", tokens(100)), [5, 6, 7, 8])
    assert matched == 96
    (load,) = plan.loads.values()
    assert load.page_ids == saved.page_ids
    assert load.block_ids == [5, 6, 7]
    assert not plan.saves
    assert operator.stats().locks == 0


def test_only_what_the_engine_has_not_itself_is_loaded(scheduler):
    serve(scheduler, Request("1", tokens(100)), [1, 2, 3, 4])
    request = Request("2", tokens(100))
    assert scheduler.matched_tokens(request, 64) == 32
    scheduler.will_load(request, [5, 6, 7, 8], 32)
    plan = scheduler.plan(Step(new=[(request, [5, 6, 7, 8], 96, 4)]))
    (load,) = plan.loads.values()
    assert load.block_ids == [7]


def test_a_chunked_prefill_is_published_chunk_by_chunk(scheduler, operator):
    request = Request("1", tokens(150))
    assert scheduler.matched_tokens(request, 0) == 0
    scheduler.will_load(request, [1, 2], 0)
    plan = scheduler.plan(Step(new=[(request, [1, 2], 0, 64)]))
    scheduler.take(written(plan))
    assert operator.match_prefix(tokens(150)).matched_tokens == 64
    plan = scheduler.plan(Step(cached=[(request, [3, 4, 5], 64, 86)]))
    assert [copy.block_ids for copy in plan.saves.values()] == [[3, 4]]
    scheduler.take(written(plan))
    assert operator.match_prefix(tokens(150)).matched_tokens == 128
    scheduler.end("1")
    assert operator.stats().locks == 0


def test_nothing_is_published_before_every_worker_has_written_it(scheduler, operator):
    request = Request("1", tokens(64 + 1))
    scheduler.matched_tokens(request, 0)
    plan = scheduler.plan(Step(new=[(request, [1, 2, 3], 0, 65)]))
    scheduler.take(written(plan, workers=1))
    scheduler.end("1")
    assert operator.match_prefix(tokens(65)).matched_tokens == 0
    scheduler.take(written(plan, workers=1))
    assert operator.match_prefix(tokens(65)).matched_tokens == 64
    assert operator.stats().locks == 0


def test_a_lookup_while_waiting_is_one_call_and_one_lock(scheduler, operator):
    request = Request("1", tokens(100))
    before = operator.stats().counters.matches
    for _ in range(5):
        scheduler.matched_tokens(request, 0)
    stats = operator.stats()
    assert (stats.counters.matches - before, stats.locks) == (1, 1)


def test_an_abort_while_waiting_gives_the_lock_back(scheduler, operator):
    scheduler.matched_tokens(Request("1", tokens(100)), 0)
    scheduler.end("1")
    assert operator.stats().locks == 0


def test_what_is_loaded_stays_locked_after_an_abort(scheduler, operator):
    """The copy may be under way on the device."""
    serve(scheduler, Request("1", tokens(100)), [1, 2, 3, 4])
    request = Request("2", tokens(100))
    blocks = [5, 6, 7, 8]
    scheduler.will_load(request, blocks, scheduler.matched_tokens(request, 0))
    plan = scheduler.plan(Step(new=[(request, blocks, 96, 4)]))
    scheduler.end("2")
    assert operator.stats().locks == 1
    scheduler.take(written(plan))
    assert operator.stats().locks == 0


def test_a_preempted_request_comes_back_as_another(scheduler, operator):
    request = Request("1", tokens(100))
    scheduler.matched_tokens(request, 0)
    late = scheduler.plan(Step(new=[(request, [1, 2, 3, 4], 0, 100)]))
    request.num_preemptions += 1
    scheduler.plan(Step(preempted=["1"]))
    assert scheduler.matched_tokens(request, 0) == 0  # not written yet
    scheduler.take(written(late))
    assert operator.match_prefix(tokens(100)).matched_tokens == 96
    plan = scheduler.plan(Step(new=[(request, [5, 6, 7, 8], 0, 100)]))
    scheduler.take(written(plan))
    scheduler.end("1")
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_what_finds_no_room_is_not_saved_and_the_request_goes_on(scheduler, operator):
    held = operator.allocate_pages(62)
    request = Request("1", tokens(100))
    scheduler.matched_tokens(request, 0)
    plan = scheduler.plan(Step(new=[(request, [1, 2, 3, 4], 0, 100)]))
    assert [len(copy.page_ids) for copy in plan.saves.values()] == [1]
    scheduler.take(written(plan))
    operator.free_pages(held)
    # The next step saves the rest.
    request.all_token_ids.append(7)
    plan = scheduler.plan(Step(cached=[(request, [], 100, 1)]))
    assert [copy.block_ids for copy in plan.saves.values()] == [[2, 3]]
    scheduler.take(written(plan))
    scheduler.end("1")
    assert operator.match_prefix(tokens(100)).matched_tokens == 96


def test_what_was_not_saved_is_not_published(scheduler, operator):
    request = Request("1", tokens(150))
    scheduler.matched_tokens(request, 0)
    first = scheduler.plan(Step(new=[(request, [1, 2], 0, 64)]))
    second = scheduler.plan(Step(cached=[(request, [3, 4, 5], 64, 86)]))
    scheduler.take(CopyReport(dict.fromkeys(second.saves, 2), failed=set(first.saves)))
    assert operator.match_prefix(tokens(150)).matched_tokens == 0
    # A worker may still write there.
    assert operator.stats().pages.reserved == 2
    scheduler.take(written(first))
    scheduler.end("1")
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_a_pandod_that_begins_anew_is_a_miss_and_then_a_cache_again(scheduler, pandod):
    serve(scheduler, Request("1", tokens(100)), [1, 2, 3, 4])
    waiting = Request("2", tokens(100))
    assert scheduler.matched_tokens(waiting, 0) == 96
    pandod.kill()
    assert scheduler.matched_tokens(Request("3", tokens(100)), 0) == 0
    pandod.start()
    with Client(pandod.address) as other:
        deadline_passes(scheduler)
        matched, _ = serve(scheduler, Request("4", tokens(100)), [1, 2, 3, 4])
        assert matched == 0
        scheduler.matched_tokens(waiting, 0)
        scheduler.end("2")
        matched, _ = serve(scheduler, Request("5", tokens(100)), [1, 2, 3, 4])
        assert matched == 96
        assert other.stats().locks == 0


def deadline_passes(scheduler):
    """The new session is there, and pandod is not left alone any more."""
    from eventually import eventually

    client = scheduler._access.client
    eventually(lambda: client.generation > 1 and client.session_id)
    eventually(lambda: not client.is_away)


def test_a_reset_forgets_without_flushing(scheduler, operator):
    serve(scheduler, Request("1", tokens(100)), [1, 2, 3, 4])
    scheduler.reset()
    matched, _ = serve(scheduler, Request("2", tokens(100)), [1, 2, 3, 4])
    assert matched == 0
    assert operator.match_prefix(tokens(100)).matched_tokens == 96


def test_a_reset_that_preempts_loads_all_that_is_told_to_be_cached(scheduler, operator):
    """The request is preempted and begins again in one step."""
    serve(scheduler, Request("1", tokens(64)), [1, 2])
    request = Request("2", tokens(100))
    blocks = [3, 4, 5, 6]
    scheduler.will_load(request, blocks, scheduler.matched_tokens(request, 0))
    before = scheduler.plan(Step(new=[(request, blocks, 64, 36)]))
    request.num_preemptions += 1
    matched, blocks = scheduler.matched_tokens(request, 0), [7, 8, 9, 10]
    scheduler.will_load(request, blocks, matched)
    plan = scheduler.plan(
        Step(resumed=[(request, blocks, matched, 36)], preempted=["2"])
    )
    assert matched == 64
    assert [copy.block_ids for copy in plan.loads.values()] == [[7, 8]]
    scheduler.take(written(before))
    scheduler.take(written(plan))
    scheduler.end("2")
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_after_a_reset_what_waits_has_found_nothing(scheduler, operator):
    serve(scheduler, Request("1", tokens(100)), [1, 2, 3, 4])
    waiting = Request("2", tokens(100))
    assert scheduler.matched_tokens(waiting, 0) == 96
    scheduler.reset()
    assert operator.stats().locks == 0
    assert scheduler.matched_tokens(waiting, 0) == 0
    scheduler.end("2")


def test_after_a_reset_what_runs_publishes_nothing_more(scheduler, operator):
    request = Request("1", tokens(150))
    scheduler.matched_tokens(request, 0)
    plan = scheduler.plan(Step(new=[(request, [1, 2], 0, 64)]))
    scheduler.take(written(plan))
    request.num_computed_tokens = 64
    scheduler.reset()
    plan = scheduler.plan(Step(cached=[(request, [3, 4, 5], 64, 86)]))
    scheduler.take(written(plan))
    scheduler.end("1")
    assert operator.match_prefix(tokens(150)).matched_tokens == 64
    stats = operator.stats()
    assert (stats.locks, stats.pages.reserved) == (0, 0)


def test_the_lora_and_the_salt_are_the_namespace():
    lora = SimpleNamespace(lora_name="sql", lora_path="/loras/sql")
    other = SimpleNamespace(lora_name="sql", lora_path="/loras/another")
    names = [
        namespace_of(Request("1", [], lora_request=lora)),
        namespace_of(Request("1", [], lora_request=other)),
        namespace_of(Request("1", [], cache_salt="a")),
        namespace_of(Request("1", [], lora_request=lora, cache_salt="a")),
        namespace_of(Request("1", [], lora_request=lora), "later"),
        namespace_of(Request("1", [])),
    ]
    assert len(set(names)) == len(names)
    assert names[-1] is None
    assert names[2] == Namespace(cache_salt="a")


def test_a_name_that_is_too_long_is_a_digest():
    def salted(salt):
        return namespace_of(Request("1", [], cache_salt=salt)).cache_salt

    assert len(salted("x" * 10_000)) < 256
    assert salted("x" * 10_000) != salted("x" * 10_001)
    assert salted("short") == "short"


def test_images_in_the_middle_of_a_prompt_tell_prompts_apart():
    def of(identifier):
        place = SimpleNamespace(offset=10, length=30)
        feature = SimpleNamespace(identifier=identifier, mm_position=place)
        return Tokens(Request("1", [9] * 64, mm_features=[feature]))

    cat, dog = of("cat").upto(64), of("dog").upto(64)
    assert (cat[:10] == 9).all() and (cat[40:] == 9).all()
    assert (cat[10:40] != dog[10:40]).all()
    # However they are asked for.
    again = of("cat")
    again.upto(17)
    again.upto(33)
    np.testing.assert_array_equal(again.upto(64), cat)


def test_prompts_of_embeddings_are_not_cached(scheduler, operator):
    request = Request("1", tokens(100), prompt_embeds=object())
    assert not can_be_cached(request)
    assert scheduler.matched_tokens(request, 0) == 0
    plan = scheduler.plan(Step(new=[(request, [1, 2, 3, 4], 0, 100)]))
    assert not plan.saves
    scheduler.end("1")
    assert operator.stats().locks == 0
