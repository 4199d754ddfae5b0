"""vLLM's own Scheduler over pages, with chunks, preemption, aborts and a full pool."""

import contextlib

import pytest
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.schedulers.conftest import PAGES
from engines.vllm.start import prompt


@pytest.fixture
def operator(operator):
    yield operator
    assert operator.stats().locks == 0


@pytest.fixture
def start(model, pandod, operator):
    """Yields a function that starts schedulers; they end before `operator` checks."""
    with contextlib.ExitStack() as stack:

        def make(**arguments):
            alone = SchedulerAlone(model, pandod.address, blocks=PAGES, **arguments)
            stack.callback(alone.close)
            return alone

        yield make


def test_a_chunked_prefill_is_published_and_found_by_another(start, operator):
    first, second, tokens = start(), start(), prompt(300, seed=1)
    first.add("1", tokens)
    chunks = []
    while first.scheduler.has_requests():
        chunks += first.step().values()
    assert chunks == [64, 64, 64, 64, 44]
    assert operator.match_prefix(tokens).matched_tokens == 288

    second.add("2", tokens)
    assert second.step() == {"2": 300 - 288}
    second.run()


def test_a_chunk_is_found_before_the_prompt_is_done(start, operator):
    alone, tokens = start(), prompt(300, seed=2)
    alone.add("1", tokens)
    for _ in range(3):
        alone.step()
    # The connector does not make a call for fewer than four pages.
    assert operator.match_prefix(tokens).matched_tokens in (128, 192)
    alone.run()


def test_preempted_requests_come_back_and_end(start, operator):
    """The outputs of the requests outgrow the blocks."""
    held = operator.allocate_pages(PAGES - 1 - 12)
    alone = start()
    requests = [alone.add(str(n), prompt(120, seed=10 + n), new=100) for n in range(3)]
    alone.run()
    assert alone.preempted
    assert [len(request.output_token_ids) for request in requests] == [100] * 3
    operator.free_pages(held)
    found = [operator.match_prefix(prompt(120, seed=10 + n)) for n in range(3)]
    # The pool is too small for all prompts, but it keeps at least the last one.
    assert max(match.matched_tokens for match in found) == 96


def test_an_abort_while_waiting_or_running_leaves_nothing(start, operator):
    alone = start(max_num_seqs=1)
    for n in range(3):
        alone.add(str(n), prompt(100, seed=20 + n), new=50)
    alone.step()
    assert operator.stats().locks >= 1
    alone.abort("1", "2")
    alone.step()
    alone.abort("0")
    alone.step()
    assert operator.stats().locks == 0
    assert operator.stats().pages.protected == 0


def test_a_request_waits_for_pages_of_a_pool_that_is_full(start, operator):
    alone, tokens = start(), prompt(100, seed=30)
    held = operator.allocate_pages(PAGES, at_least=0)
    assert held.size > 0
    alone.add("1", tokens, new=3)
    for _ in range(3):
        assert not alone.step()
    operator.free_pages(held)
    alone.run()


def test_tenants_do_not_find_each_other(start):
    alone, tokens = start(), prompt(3 * BLOCK_TOKENS, seed=40)
    alone.add("1", tokens, cache_salt="one")
    alone.run()
    alone.add("2", tokens, cache_salt="two")
    assert sum(alone.step().values()) == 64
    alone.run()
    alone.add("3", tokens, cache_salt="one")
    assert alone.step() == {"3": BLOCK_TOKENS}
