"""Two SGLang engines on the blocks of one pandod. They return the tokens of one engine
without Pando, and find as many cached tokens as that engine."""

import numpy as np
import pytest
from engines.engine_process import closing_all
from engines.models import make_model
from engines.sglang.linker.engines import finds, nothing_is_held
from engines.sglang.start import prompt
from eventually import eventually
from pando_kv import Client, Operator

KINDS = ("plain", "latent", "windows")


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def three(kind, pandod, engines_of, tmp_path_factory):
    """Yields two engines on pandod, and one with its own cache alone."""
    engines = engines_of(tmp_path_factory.mktemp(kind))
    started = [
        engines.start("a", kind, pandod, schedule_policy="lpm"),
        engines.start("b", kind, pandod),
        engines.start("alone", kind),
    ]
    with closing_all(started):
        yield started
        for engine in started:
            engine.close()


@pytest.fixture
def blocks(pandod):
    with Operator(pandod.address) as operator:
        yield operator
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []


def test_what_another_engine_computed_is_cached_as_in_ones_own(three, blocks):
    first, second, alone = three
    prompts = [prompt(n, seed=n) for n in (740, 540, 860, 300)]
    for tokens in prompts:
        expected = [alone.ask(prompts=[tokens], new=12) for _ in range(2)]
        computed = first.ask(prompts=[tokens], new=12)
        found = second.ask(prompts=[tokens], new=12)
        assert computed["outputs"] == expected[0]["outputs"]
        assert found["outputs"] == expected[1]["outputs"]
        assert (computed["cached"], found["cached"]) == (
            expected[0]["cached"],
            expected[1]["cached"],
        )


def test_a_twin_of_another_rope_finds_nothing(
    kind, pandod, three, engines_of, blocks, tmp_path
):
    """The twin has the same weights."""
    if kind != "plain":
        pytest.skip("one kind of model has a twin here")
    tokens = prompt(300, seed=80)
    three[0].ask(prompts=[tokens])
    twin = make_model(tmp_path / "twin", rope_theta=1e6)
    engine = engines_of(tmp_path).start("twin", kind, pandod, model_path=str(twin))
    with closing_all([engine]):
        assert engine.ask(prompts=[tokens])["cached"] == [0]
        engine.close()
    assert three[1].ask(prompts=[tokens])["cached"] == [288]


def test_conversations_that_cross_engines(three, blocks):
    """The engines take turns, with three conversations in each turn."""
    histories = {key: prompt(100 + 37 * i, seed=10 + i) for i, key in enumerate("xyz")}
    cached = 0
    for turn in range(8):
        engine, alone = three[turn % 2], three[2]
        batch = list(histories.values())
        answer = engine.ask(prompts=batch, new=20)
        expected = alone.ask(prompts=batch, new=20)
        assert answer["outputs"] == expected["outputs"], f"turn {turn}"
        cached += sum(answer["cached"])
        for (key, history), output in zip(
            list(histories.items()), answer["outputs"], strict=True
        ):
            histories[key] = history + output + prompt(9 + turn, seed=100 + turn)
    assert cached > 1500


def test_prompts_that_end_inside_a_page_and_a_window(three, blocks):
    first, second, alone = three
    tokens = prompt(400, seed=20)
    first.ask(prompts=[tokens], new=4)
    for end in (399, 385, 384, 350, 250, 70, 17, 15):
        cut = [tokens[:end] + prompt(20, seed=21)]
        expected = alone.ask(prompts=cut, new=12)
        assert second.ask(prompts=cut, new=12)["outputs"] == expected["outputs"]


def test_a_flush_takes_nothing_from_the_store(three, blocks):
    first, _, alone = three
    tokens = prompt(350, seed=30)
    expected = alone.ask(prompts=[tokens], new=12)["outputs"]
    first.ask(prompts=[tokens], new=12)
    stored_all(first)
    assert first.ask(flush=True)["flushed"]
    again = first.ask(prompts=[tokens], new=12)
    assert again["outputs"] == expected
    assert again["cached"] == [336]


def stored_all(engine):
    """Waits until no page is on its way to the store."""
    eventually(lambda: engine.ask(step=1)["offloads"] == 0)


def test_salts_are_worlds_apart(three, blocks):
    first, second, _ = three
    tokens = prompt(200, seed=31)
    first.ask(prompts=[tokens], cache_salt="one")
    stored_all(first)
    assert second.ask(prompts=[tokens], cache_salt="two")["cached"] == [0]
    assert second.ask(prompts=[tokens])["cached"] == [0]
    assert second.ask(prompts=[tokens], cache_salt="one")["cached"] == [192]


def test_requests_that_are_aborted_while_they_wait_hold_nothing(three, blocks):
    first, second, alone = three
    shared = prompt(160, seed=40)
    first.ask(prompts=[shared])
    stored_all(first)
    prompts = [shared + prompt(20 + i, seed=41 + i) for i in range(30)]
    expected = alone.ask(prompts=prompts, new=6)["outputs"]
    ids = second.ask(start=prompts, new=6)["ids"]
    second.ask(step=1)
    for request in ids[::3]:
        second.ask(abort=request)
    second.ask(step=80)
    for n, request in enumerate(ids):
        if n % 3:
            assert second.ask(output=request)["output"] == expected[n]


def test_ranking_a_queue_asks_about_each_request_once(three, blocks):
    """The first engine ranks by longest prefix; 60 requests wait for 16 places."""
    engine, _, alone = three
    prompts = [prompt(40 + i % 7, seed=200 + i) for i in range(60)]
    before = engine.ask(look=True)["calls"].get("LookupBlocks", 0)
    answer = engine.ask(prompts=prompts, new=6)
    assert answer["outputs"] == alone.ask(prompts=prompts, new=6)["outputs"]
    made = answer["calls"]["LookupBlocks"] - before
    # Each request makes one call as it comes and one as it is admitted. The queue makes
    # at most one more call in each tenth of a second.
    assert made <= 2 * len(prompts) + answer["steps"]


def test_kv_of_other_weights_is_not_found(three, blocks):
    first, second, alone = three
    tokens = prompt(260, seed=60)
    expected = alone.ask(prompts=[tokens], new=12)["outputs"]
    first.ask(prompts=[tokens], new=12)
    stored_all(first)
    # The first update fails, and the second one succeeds.
    for version in (None, "v2"):
        first.ask(update=version)
        # The engine stores nothing while its tree has pages of both versions.
        published = blocks.stats().blocks.published_blocks
        first.ask(prompts=[prompt(100, seed=61)])
        first.ask(step=2)
        assert blocks.stats().blocks.published_blocks == published
        assert first.ask(flush=True)["flushed"]
        assert first.ask(prompts=[tokens], new=12)["cached"] == [0]
    eventually(lambda: finds(first, tokens, expected))
    assert second.ask(prompts=[tokens], new=12)["cached"] == [256]
    second.ask(update="v2")
    eventually(lambda: finds(second, tokens, expected))


def test_memory_that_is_scrambled_changes_tokens_and_a_fresh_salt_restores_them(
    three, pandod, blocks
):
    """This test shows that the bytes come from pandod. It must be the last one here."""
    first, second, alone = three
    tokens = prompt(500, seed=50)
    expected = alone.ask(prompts=[tokens], new=12)["outputs"]
    first.ask(prompts=[tokens], new=12)
    stored_all(first)
    with Client(pandod.address, name="scrambles") as client:
        memory = client.attach_memory().bytes
        random = np.random.default_rng(5)
        memory[:] = random.integers(0, 60, memory.size, np.uint8)
    found = second.ask(prompts=[tokens], new=12)
    assert found["cached"][0] > 400
    assert found["outputs"] != expected
    salted = second.ask(prompts=[tokens], new=12, cache_salt=f"{expected}"[:40])
    assert salted["cached"] == [0]
    assert salted["outputs"] == expected
