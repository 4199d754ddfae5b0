"""Copies with a stream of their own: requests that wait for their loads, and saves that
are read while others get the blocks."""

import contextlib
import random

import pytest
from engines.vllm.engine_alone import EngineAlone
from engines.vllm.faults import another_pool, device_without_memory
from engines.vllm.late_stream import NEVER, LateStream
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.schedulers.conftest import PAGES
from engines.vllm.start import prompt
from eventually import eventually

PROMPT = prompt(300, seed=50)
WHOLE = 288


@pytest.fixture
def start(model, pandod, operator):
    """Engines, which end before it is looked at what they leave."""
    with contextlib.ExitStack() as stack:

        def make(blocks=PAGES, late=0, kind=EngineAlone, **arguments):
            engine = kind(
                model, pandod.address, LateStream(late), blocks=blocks, **arguments
            )
            stack.callback(engine.close)
            return engine

        yield make


@pytest.fixture
def computed(start):
    """An engine that has published the prompt."""
    engine = start()
    engine.add("computed", PROMPT)
    engine.run()
    return engine


def nothing_is_held(operator, *engines):
    stats = operator.stats()
    return (stats.locks, stats.pages.reserved) == (0, 0) and all(
        engine.free_blocks == engine.scheduler.kv_cache_config.num_blocks - 1
        for engine in engines
    )


def test_who_waits_for_its_load_holds_up_nobody(computed, start, operator):
    engine = start(late=NEVER)
    engine.add("waits", PROMPT)
    engine.add("other", prompt(40, seed=51), new=3)
    assert engine.step() == {"other": 40}
    assert engine.step() == {"other": 1}
    engine.stream.late = 0
    assert engine.step() == {"other": 1}
    assert engine.step() == {"waits": 300 - WHOLE}
    assert [load.request_id for load in engine.loads] == ["waits"]
    engine.run()
    assert nothing_is_held(operator, engine, computed)


def test_an_abort_while_a_load_is_under_way_gives_all_back_in_the_end(
    computed, start, operator
):
    """Not before: the device may still write to the blocks."""
    engine = start(late=NEVER)
    engine.add("1", PROMPT)
    engine.step()
    engine.abort("1")
    engine.step()
    assert operator.stats().locks == 1
    assert not nothing_is_held(operator, engine)
    engine.stream.late = 0
    engine.run()
    assert nothing_is_held(operator, engine)


@pytest.mark.parametrize("fault", [another_pool, device_without_memory])
def test_what_was_not_loaded_is_computed_and_not_asked_for_again(
    computed, start, operator, fault
):
    engine = start()
    engine.add("1", PROMPT + prompt(100, seed=52))
    engine.fault = fault
    assert not engine.step()
    engine.fault = contextlib.nullcontext
    assert engine.step() == {"1": 64}
    engine.run()
    assert len(engine.loads) == 1
    assert nothing_is_held(operator, engine)
    # The KV that was computed in its place is published, and right.
    assert operator.match_prefix(PROMPT + prompt(100, seed=52)).matched_tokens == 384
    other = start()
    other.add("2", PROMPT + prompt(101, seed=52))
    other.run()
    assert len(other.loads) == 1


def test_blocks_are_given_out_anew_while_a_save_reads_them(start, operator):
    """The step that writes to them comes after it."""
    engine = start(blocks=11, late=NEVER)
    engine.add("1", PROMPT)
    engine.add("2", prompt(300, seed=53))
    for _ in range(20):
        engine.step()
    assert engine.stream.waited_for > 0
    assert not engine.scheduler.running and not engine.scheduler.waiting
    engine.stream.late = 0
    engine.run()
    assert nothing_is_held(operator, engine)
    reader = start()
    for n, tokens in enumerate([PROMPT, prompt(300, seed=53)]):
        reader.add(str(n), tokens)
    reader.run()
    assert [len(load.page_ids) for load in reader.loads] == [9, 9]


class FirstRunner(EngineAlone):
    """Fills blocks that are given out with zeros, as vLLM's first model runner does."""

    def _compute(self, output):
        self._fill(output)
        super()._compute(output)

    def _fill(self, output):
        for new in output.scheduled_new_reqs:
            first = new.num_computed_tokens // BLOCK_TOKENS
            self._memory[:, new.block_ids[0][first:]] = 0
        for added in output.scheduled_cached_reqs.new_block_ids:
            if added is not None:
                self._memory[:, added[0]] = 0


class SecondRunner(FirstRunner):
    """Does so before it tells the connector of the step."""

    def work(self, output):
        self._fill(output)
        return super().work(output)


@pytest.mark.parametrize("runner", [FirstRunner, SecondRunner])
def test_what_was_in_a_block_is_saved_before_the_first_runner_fills_it_with_zeros(
    start, operator, runner
):
    """The second one's order is why it is refused."""
    engine = start(blocks=11, late=NEVER, kind=runner)
    engine.add("1", PROMPT)
    engine.add("2", prompt(300, seed=53))
    for _ in range(20):
        engine.step()
    assert engine.stream.waited_for > 0
    engine.stream.late = 0
    engine.run()
    reader = start()
    reader.add("1", PROMPT)
    if runner is FirstRunner:
        reader.run()
        assert [len(load.page_ids) for load in reader.loads] == [9]
    else:
        with pytest.raises(AssertionError, match="1 reads what is not its own"):
            reader.run()


def test_an_engine_without_requests_goes_on_until_its_saves_are_published(
    start, operator
):
    engine = start(late=8)
    engine.add("1", PROMPT)
    while engine.scheduler.requests:
        engine.step()
    assert operator.match_prefix(PROMPT).matched_tokens < WHOLE
    assert engine.scheduler.has_requests()
    engine.run()
    assert operator.match_prefix(PROMPT).matched_tokens == WHOLE
    assert nothing_is_held(operator, engine)


def test_a_reset_under_a_load_lets_it_end_and_nothing_more_is_published(
    computed, start, operator
):
    engine, tokens = start(late=NEVER), PROMPT + prompt(100, seed=54)
    engine.add("1", tokens)
    engine.step()
    with pytest.raises(RuntimeError, match="remote KV transfer"):
        engine.scheduler.reset_prefix_cache(reset_running_requests=True)
    engine.scheduler.reset_prefix_cache(reset_connector=True)
    engine.stream.late = 0
    assert not engine.step()
    assert engine.step() == {"1": 64}
    engine.run()
    assert operator.match_prefix(tokens).matched_tokens == WHOLE
    assert nothing_is_held(operator, engine)


def test_a_pandod_that_is_killed_under_a_load_costs_no_token(
    computed, start, operator, pandod
):
    engine = start(late=NEVER)
    request = engine.add("1", PROMPT, new=20)
    engine.step()
    pandod.kill()
    generation = operator.generation
    engine.stream.late = 0
    for _ in range(5):
        engine.step()
    pandod.start()
    eventually(lambda: operator.generation != generation)
    engine.run()
    assert len(request.output_token_ids) == 20
    eventually(lambda: nothing_is_held(operator, engine))


def test_any_lateness_under_pressure_costs_no_wrong_byte(start, operator):
    """Two engines with too few blocks for their requests, some of which are aborted."""
    seed = 1
    print(f"seed {seed}")
    choose = random.Random(seed)
    engines = [start(blocks=13), start(blocks=13)]
    prompts = [prompt(choose.randrange(40, 280), seed=60 + n) for n in range(4)]
    names = [str(n) for n in range(60)]
    to_come = list(names)
    while to_come or any(engine.scheduler.has_requests() for engine in engines):
        engine = choose.choice(engines)
        if to_come and choose.random() < 0.3:
            tokens = choose.choice(prompts) + prompt(choose.randrange(1, 80), seed=70)
            engine.add(to_come.pop(), tokens, new=choose.randrange(1, 100))
        if choose.random() < 0.02:
            engine.abort(choose.choice(names))
        engine.stream.late = choose.choice([0, 30, 100, 300])
        engine.step()
    assert any(engine.preempted for engine in engines)
    assert all(engine.loads for engine in engines)
    assert any(engine.stream.waited_for for engine in engines)
    eventually(lambda: nothing_is_held(operator, *engines))
    assert operator.stats().pages.protected == 0


def test_what_two_requests_share_is_loaded_for_each(computed, start, operator):
    engine = start(late=2)
    for n in range(3):
        engine.add(str(n), PROMPT[: 3 * BLOCK_TOKENS] + prompt(40, seed=80 + n))
    engine.run()
    assert [len(load.page_ids) for load in engine.loads] == [3, 3, 3]
    assert nothing_is_held(operator, engine)
