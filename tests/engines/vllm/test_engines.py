"""Two vLLM engines that compute in one pool return the tokens of vLLM without Pando."""

import numpy as np
from engines.vllm.start import prompt, whole_blocks
from eventually import eventually


def test_a_prompt_that_another_engine_computed_is_not_computed(engines, reference):
    first, second = engines
    tokens = prompt(740, seed=1)
    computed = first.ask(prompts=[tokens])
    found = second.ask(prompts=[tokens])
    expected = reference.ask(prompts=[tokens])

    assert computed["cached"] == [0]
    assert found["cached"] == [736]
    assert computed["outputs"] == found["outputs"] == expected["outputs"]


def test_blocks_are_the_pool_whatever_memory_is_free(engines):
    assert engines[0].ask(look=True)["blocks"] == 512


def test_conversations_that_cross_engines(engines, reference, operator):
    """The engines take turns; some turns are batches or use a salt."""
    hits = operator.stats().counters.hit_tokens
    cached = 0
    histories = {
        key: [prompt(100 + 37 * i, seed=10 + i)] for i, key in enumerate("xyz")
    }
    for turn in range(10):
        salt = {"salt": "tenant"} if turn % 5 == 4 else {}
        batch = [sum(history, []) for history in histories.values()]
        if turn % 4 == 3:
            batch = batch[:1]
        answer = engines[turn % 2].ask(prompts=batch, new=20, **salt)
        expected = reference.ask(prompts=batch, new=20)

        assert answer["outputs"] == expected["outputs"], f"turn {turn}"
        cached += sum(answer["cached"])
        for history, output in zip(histories.values(), answer["outputs"], strict=False):
            history.append(output + prompt(9 + turn, seed=100 + turn))
    assert operator.stats().counters.hit_tokens - hits == cached
    assert cached > 2000


def test_pages_that_are_scrambled_change_the_tokens(engines, operator):
    """The tokens come from these pages, and only a fresh salt avoids the pages."""
    tokens = prompt(400, seed=4)
    right = engines[0].ask(prompts=[tokens])["outputs"]
    pages = operator.match_prefix(tokens).page_ids
    pool = operator.attach_pool()
    random = np.random.default_rng(1)
    for layer in range(pool.layout.layers):
        memory = pool.opaque_pages(layer)
        kept = memory[pages].view(np.float32)
        memory[pages] = (
            random.permutation(kept.ravel()).reshape(kept.shape).view(np.uint8)
        )
    for engine in engines:
        assert engine.ask(prompts=[tokens])["outputs"] != right
        salt = f"fresh {id(engine)}"
        assert engine.ask(prompts=[tokens], salt=salt)["outputs"] == right


def test_a_salt_keeps_tenants_apart(engines):
    tokens = prompt(200, seed=5)
    for engine in engines:
        assert engine.ask(prompts=[tokens], salt=f"own {id(engine)}")["cached"] == [0]
        found = engine.ask(prompts=[tokens], salt=f"own {id(engine)}")["cached"]
        assert found == [whole_blocks(200)]


def test_a_reset_takes_nothing_from_others(engines):
    first, second = engines
    tokens = prompt(150, seed=6)
    first.ask(prompts=[tokens])
    assert first.ask(reset=True)["reset"]
    assert first.ask(prompts=[tokens])["cached"] == [0]
    assert second.ask(prompts=[tokens])["cached"] == [whole_blocks(150)]


def test_what_is_aborted_while_it_waits_holds_nothing(engines, operator):
    engine = engines[0]
    prompts = [prompt(70, seed=200 + i) for i in range(12)]
    ids = engine.ask(start=prompts, new=30)["ids"]
    assert engine.ask(step=3)["waiting"] > 0
    engine.ask(abort=ids)
    engine.ask(step=3)
    assert operator.stats().locks == 0


def test_nothing_is_left_over(engines, operator):
    stats = operator.stats()
    assert (stats.locks, stats.pages.protected) == (0, 0)
    for engine in engines:
        engine.ask(look=True)
    eventually(lambda: operator.stats().pages.reserved <= 128)
