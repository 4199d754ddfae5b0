"""Two mini-SGLang engines on one pool return the tokens of one without Pando."""

import re
from pathlib import Path

import pytest
from engines.engine_process import EngineDied, closing_all
from engines.minisgl.conftest import serve_pool
from engines.sglang.start import prompt
from eventually import eventually
from pando_kv import Client


def test_an_engine_is_as_large_as_the_pool_whatever_memory_is_free(engines):
    assert [engine.ask(look=True)["pages"] for engine in engines] == [511, 511]


def test_a_prompt_that_another_engine_computed_is_cached(engines, reference):
    first, second = engines
    tokens = prompt(740, seed=1)
    computed = first.ask(prompts=[tokens])
    found = second.ask(prompts=[tokens])

    assert computed["cached"] == [0]
    assert found["cached"] == [736]
    expected = reference.ask(prompts=[tokens])["outputs"]
    assert computed["outputs"] == found["outputs"] == expected


def test_kv_tensors_are_the_pool_that_is_mapped(engines):
    for engine in engines:
        seen = engine.ask(look=True)
        mapped = [
            range(int(begin, 16), int(end, 16))
            for begin, end in re.findall(
                r"^(\w+)-(\w+) rw-s .*memfd:pando",
                Path(f"/proc/{seen['pid']}/maps").read_text(),
                re.M,
            )
        ]
        for address in seen["addresses"]:
            assert any(address in area for area in mapped), hex(address)


def test_conversations_that_cross_engines(engines, reference, operator):
    hits = operator.stats().counters.hit_tokens
    cached = 0
    histories = [[prompt(100 + 37 * i, seed=10 + i)] for i in range(3)]
    for turn in range(10):
        batch = [sum(history, []) for history in histories]
        if turn % 3 == 2:
            batch = batch[:1]
        answer = engines[turn % 2].ask(prompts=batch, new=20)
        expected = reference.ask(prompts=batch, new=20)

        assert answer["outputs"] == expected["outputs"], f"turn {turn}"
        cached += sum(answer["cached"])
        for history, output in zip(histories, answer["outputs"], strict=False):
            history.append(output + prompt(9 + turn, seed=100 + turn))
    assert operator.stats().counters.hit_tokens - hits == cached
    assert cached > 3000


def test_an_abort_in_prefill_and_one_in_decode_leave_nothing(
    engines, reference, operator
):
    engine = engines[0]
    tokens = prompt(700, seed=20)
    for steps in (1, 2, 6):
        engine.ask(start=[tokens], new=40)
        engine.ask(step=steps)
        engine.ask(abort=0)
        # Another request makes the engine finish the steps that were under way.
        engine.ask(start=[prompt(20, seed=21)], new=2)
        engine.ask(step=4)
        assert operator.stats().locks == 0
    again = engines[1].ask(prompts=[tokens])
    assert again["outputs"] == reference.ask(prompts=[tokens])["outputs"]


def test_an_abort_before_the_first_token_leaves_nothing(engines, operator):
    """The engine aborts the request before the step that computes its prompt ends."""
    engine = engines[0]
    for new in (40, 1):
        engine.ask(start=[prompt(100, seed=22 + new)], new=new)
        engine.ask(step=1)
        engine.ask(abort=0)
        engine.ask(step=1)
        assert operator.stats().locks == 0
    engine.ask(idle=True)


def test_nothing_is_left_over(engines, operator):
    for engine in engines:
        engine.ask(idle=True)
    stats = operator.stats()
    assert (stats.locks, stats.pages.protected) == (0, 0)


def test_both_serve_at_once_from_a_pool_that_is_too_small(
    start_engine, reference, tmp_path
):
    server = serve_pool(tmp_path, 96)
    pair = [start_engine(name, server, tmp_path, num_page_override=95) for name in "ab"]
    loads = [
        [prompt(300 + 20 * i, seed=30 + 10 * e + i) for i in range(6)] for e in (0, 1)
    ]
    with closing_all(pair), Client(server.address) as operator:
        for engine, load in zip(pair, loads, strict=True):
            engine.send(prompts=load, new=60)
        answers = [engine.answer() for engine in pair]
        for answer, load in zip(answers, loads, strict=True):
            assert answer["outputs"] == reference.ask(prompts=load, new=60)["outputs"]
        assert operator.stats().locks == 0
        assert operator.check_invariants() == []

        victim, other = pair
        victim.ask(start=[prompt(300, seed=50)], new=60)
        victim.ask(step=6)
        assert operator.stats().locks == 1
        victim.kill()
        eventually(lambda: operator.stats().locks == 0)
        load = [prompt(300, seed=50)]
        answer = other.ask(prompts=load)
        assert answer["outputs"] == reference.ask(prompts=load)["outputs"]
    server.close()


def test_engines_that_do_not_fit_are_refused(start_engine, roomy, tmp_path):
    engines = {
        "--num-pages 511": start_engine("few", roomy, tmp_path, num_page_override=100),
        "the engine needs --page-size 16": start_engine(
            "page", roomy, tmp_path, page_size=32
        ),
    }
    with closing_all(list(engines.values())):
        for said, engine in engines.items():
            with pytest.raises(EngineDied):
                engine.ready()
            assert said in engine.log()
