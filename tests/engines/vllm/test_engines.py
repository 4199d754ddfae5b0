"""vLLM engines over one pandod say what vLLM says by itself: two that copy pages, and one
that computes in them."""

import numpy as np
from engines.vllm.start import prompt, whole_blocks
from eventually import eventually


def test_a_prompt_that_another_engine_computed_is_copied(copies, reference):
    first, second = copies
    tokens = prompt(740, seed=1)
    computed = first.ask(prompts=[tokens])
    found = second.ask(prompts=[tokens])
    expected = reference.ask(prompts=[tokens])

    assert computed["cached"] == [0]
    assert found["cached"] == [736]
    assert computed["outputs"] == found["outputs"] == expected["outputs"]


def test_blocks_without_copies_are_the_pool_whatever_memory_is_free(in_place):
    assert in_place.ask(look=True)["blocks"] == 512


def test_an_engine_without_copies_computes_on_pages_that_another_wrote(
    copies, in_place, reference
):
    tokens = prompt(637, seed=2)
    copies[0].ask(prompts=[tokens])
    found = in_place.ask(prompts=[tokens])
    assert found["cached"] == [whole_blocks(637)]
    assert found["outputs"] == reference.ask(prompts=[tokens])["outputs"]


def test_a_copying_engine_finds_what_was_computed_in_place(copies, in_place, reference):
    tokens = prompt(450, seed=3)
    in_place.ask(prompts=[tokens])
    found = copies[1].ask(prompts=[tokens])
    assert found["cached"] == [whole_blocks(450)]
    assert found["outputs"] == reference.ask(prompts=[tokens])["outputs"]


def test_conversations_that_cross_engines(copies, in_place, reference, operator):
    """Turns go round the engines, batches and a salt among them."""
    hits = operator.stats().counters.hit_tokens
    cached = 0
    engines = [*copies, in_place]
    histories = {
        key: [prompt(100 + 37 * i, seed=10 + i)] for i, key in enumerate("xyz")
    }
    for turn in range(10):
        salt = {"salt": "tenant"} if turn % 5 == 4 else {}
        batch = [sum(history, []) for history in histories.values()]
        if turn % 4 == 3:
            batch = batch[:1]
        answer = engines[turn % 3].ask(prompts=batch, new=20, **salt)
        expected = reference.ask(prompts=batch, new=20)

        assert answer["outputs"] == expected["outputs"], f"turn {turn}"
        cached += sum(answer["cached"])
        for history, output in zip(histories.values(), answer["outputs"], strict=False):
            history.append(output + prompt(9 + turn, seed=100 + turn))
    assert operator.stats().counters.hit_tokens - hits == cached
    assert cached > 2000


def test_pages_that_are_scrambled_change_the_tokens(copies, in_place, roomy, operator):
    """So the tokens come from these pages, and only a fresh salt avoids them."""
    tokens = prompt(400, seed=4)
    right = copies[0].ask(prompts=[tokens])["outputs"]
    pages = operator.match_prefix(tokens).page_ids
    pool = operator.attach_pool()
    random = np.random.default_rng(1)
    for layer in range(pool.layout.layers):
        memory = pool.opaque_pages(layer)
        kept = memory[pages].view(np.float32)
        memory[pages] = (
            random.permutation(kept.ravel()).reshape(kept.shape).view(np.uint8)
        )
    for engine in (copies[1], in_place):
        assert engine.ask(prompts=[tokens])["outputs"] != right
        assert engine.ask(prompts=[tokens], salt="fresh")["outputs"] == right


def test_a_salt_keeps_tenants_apart(copies, in_place):
    tokens = prompt(200, seed=5)
    for engine in (*copies, in_place):
        assert engine.ask(prompts=[tokens], salt=f"own {id(engine)}")["cached"] == [0]
        found = engine.ask(prompts=[tokens], salt=f"own {id(engine)}")["cached"]
        assert found == [whole_blocks(200)]


def test_a_reset_takes_nothing_from_others(copies, in_place):
    tokens = prompt(150, seed=6)
    copies[0].ask(prompts=[tokens])
    for engine in (copies[0], in_place):
        assert engine.ask(reset=True)["reset"]
        assert engine.ask(prompts=[tokens])["cached"] == [0]
    assert copies[1].ask(prompts=[tokens])["cached"] == [whole_blocks(150)]


def test_what_is_aborted_while_it_waits_holds_nothing(copies, in_place, operator):
    for engine in (copies[0], in_place):
        prompts = [prompt(70, seed=200 + i) for i in range(12)]
        ids = engine.ask(start=prompts, new=30)["ids"]
        assert engine.ask(step=3)["waiting"] > 0
        engine.ask(abort=ids)
        engine.ask(step=3)
    assert operator.stats().locks == 0


def test_nothing_is_left_over(copies, in_place, operator):
    stats = operator.stats()
    assert (stats.locks, stats.pages.protected) == (0, 0)
    in_place.ask(look=True)
    eventually(lambda: operator.stats().pages.reserved <= 64)
