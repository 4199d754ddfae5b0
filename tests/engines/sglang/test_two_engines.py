"""Two SGLang engines on one pandod return the tokens of SGLang without Pando."""

import re
from pathlib import Path

from engines.sglang.start import prompt, whole_pages


def test_an_engine_is_as_large_as_the_pool_whatever_memory_is_free(engines):
    told, derived = (engine.ask(look=True)["total"] for engine in engines)
    assert derived == told == 511 * 16


def test_a_prompt_that_another_engine_computed_is_cached(engines, reference):
    first, second = engines
    tokens = prompt(740, seed=1)
    computed = first.ask(prompts=[tokens])
    found = second.ask(prompts=[tokens])
    expected = reference.ask(prompts=[tokens])

    assert computed["cached"] == [0]
    assert found["cached"] == [736]
    assert computed["outputs"] == found["outputs"] == expected["outputs"]


def test_a_warm_request_is_two_calls(engines):
    first, second = engines
    tokens = prompt(300, seed=2)
    first.ask(prompts=[tokens])
    before = second.ask(look=True)["calls"]
    after = second.ask(prompts=[tokens])["calls"]

    made = {name: after[name] - before.get(name, 0) for name in after}
    assert {name: n for name, n in made.items() if n} == {
        "MatchPrefix": 1,
        "Insert": 1,
    }


def test_requests_that_end_in_one_step_are_published_together(engines):
    """The engine waits for the device once for all of them."""
    engine = engines[0]
    prompts = [prompt(50, seed=430 + i) for i in range(4)]
    ids = engine.ask(start=prompts, new=8)["ids"]
    before, after = engine.ask(step=7), engine.ask(step=1)
    assert [len(engine.ask(output=rid)["output"]) for rid in ids] == [8] * 4
    assert after["calls"]["Insert"] == before["calls"].get("Insert", 0) + 4
    assert after["spent"]["batches"] == before["spent"]["batches"] + 1


def cached_of_eight(engine, seed):
    """Runs eight requests with one prefix, seven after the first one has computed it.

    Returns the cached tokens and the outputs of each request."""
    tokens = prompt(200, seed=seed)
    prompts = [tokens + prompt(9, seed=seed + i) for i in range(8)]
    before = engine.ask(look=True)["calls"]
    ids = engine.ask(start=prompts[:1], new=40)["ids"]
    engine.ask(step=2)
    ids += engine.ask(start=prompts[1:], new=4)["ids"]
    made = engine.ask(step=2)["calls"]
    engine.ask(step=60)
    said = [engine.ask(output=request) for request in ids]
    assert made.get("AllocatePages") == before.get("AllocatePages")
    return [each["cached"] for each in said], [each["output"] for each in said]


def test_a_prompt_of_few_pages_is_found_while_its_request_runs(engines, reference):
    """A request finds the prompt as early as it would in SGLang's own cache."""
    expected = cached_of_eight(reference, seed=400)
    assert expected[0] == [0] + [192] * 7
    assert cached_of_eight(engines[1], seed=400) == expected


def test_a_prompt_of_few_pages_is_found_by_other_engines(engines):
    first, second = engines
    tokens = prompt(200, seed=420)
    first.ask(start=[tokens], new=40)
    first.ask(step=2)
    first.ask(start=[prompt(20, seed=421)], new=2)
    first.ask(step=2)
    assert second.ask(prompts=[tokens])["cached"] == [192]
    first.ask(step=60)


def test_calls_go_over_a_lane(engines):
    assert [engine.ask(look=True)["transport"] for engine in engines] == ["lane"] * 2


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
        assert mapped
        for address in seen["key_addresses"] + seen["value_addresses"]:
            assert any(address in area for area in mapped), hex(address)


def test_conversations_that_cross_engines(engines, reference, operator):
    """The engines take turns; some turns are batches or use another namespace."""
    hits = operator.stats().counters.hit_tokens
    cached = 0
    histories = {
        key: [prompt(100 + 37 * i, seed=10 + i)] for i, key in enumerate("xyz")
    }
    for turn in range(12):
        engine = engines[turn % 2]
        options = {"new": 20, "extra_key": "lora" if turn % 4 == 3 else None}
        asked = {k: v for k, v in options.items() if v is not None}
        batch = [sum(history, []) for history in histories.values()]
        if turn % 3 == 2:
            batch = batch[:1]
        answer = engine.ask(prompts=batch, **asked)
        expected = reference.ask(prompts=batch, **asked)

        assert answer["outputs"] == expected["outputs"], f"turn {turn}"
        assert answer["cached"] == expected["cached"], f"turn {turn}"
        cached += sum(answer["cached"])
        for history, output in zip(histories.values(), answer["outputs"], strict=False):
            history.append(output + prompt(9 + turn, seed=100 + turn))
    assert operator.stats().counters.hit_tokens - hits == cached
    assert cached > 3000


def test_a_salt_and_an_extra_key_are_worlds_apart(engines):
    first, second = engines
    tokens = prompt(200, seed=3)
    first.ask(prompts=[tokens], cache_salt="one")
    assert second.ask(prompts=[tokens], cache_salt="two")["cached"] == [0]
    assert second.ask(prompts=[tokens], extra_key="one")["cached"] == [0]
    assert second.ask(prompts=[tokens])["cached"] == [0]
    assert second.ask(prompts=[tokens], cache_salt="one")["cached"] == [
        whole_pages(200)
    ]


def test_a_name_too_long_for_pandod_is_a_world_of_its_own(engines, reference):
    tokens = prompt(90, seed=4)
    expected = reference.ask(prompts=[tokens], extra_key="k" * 300)
    for name, cached in (("k" * 300, 0), ("k" * 300, whole_pages(90)), ("k" * 301, 0)):
        answer = engines[0].ask(prompts=[tokens], extra_key=name)
        assert answer["outputs"] == expected["outputs"]
        assert answer["cached"] == [cached]


def test_a_flush_takes_nothing_from_others(engines):
    first, second = engines
    tokens = prompt(150, seed=5)
    first.ask(prompts=[tokens])
    assert first.ask(flush=True)["flushed"]
    assert second.ask(prompts=[tokens])["cached"] == [whole_pages(150)]
    assert first.ask(prompts=[tokens])["cached"] == [whole_pages(150)]


def test_ranking_a_queue_is_one_call_a_step(engines, operator):
    """The scheduler ranks by longest prefix; 100 requests wait for 16 places."""
    engine = engines[0]
    shared = prompt(64, seed=6)
    prompts = [shared + prompt(20 + i % 7, seed=200 + i) for i in range(100)]
    before = engine.ask(look=True)["calls"]
    answer = engine.ask(prompts=prompts, new=6)
    made = sum(answer["calls"].values()) - sum(before.values())

    assert made <= 2 * answer["steps"] + 2 * len(prompts)
    assert sum(cached > 0 for cached in answer["cached"]) >= 99 - 16
    assert operator.stats().locks == 0


def test_what_waits_holds_nothing(engines, operator):
    engine = engines[1]
    ids = engine.ask(start=[prompt(60, seed=300 + i) for i in range(40)], new=30)["ids"]
    stepped = engine.ask(step=4)
    assert stepped["waiting"] > 0
    assert operator.stats().locks <= 16
    for request in ids:
        engine.ask(abort=request)
    engine.ask(step=60)
    stats = operator.stats()
    assert stats.locks == 0


def test_what_is_published_late_is_found_then(engines, reference, operator):
    """A GPU may not have written a chunk when SGLang schedules the next one."""
    first, second = engines
    tokens = prompt(700, seed=7)
    first.ask(device="is late")
    first.ask(start=[tokens], new=4)
    first.ask(step=2)
    assert operator.match_prefix(tokens).matched_tokens == 0
    first.ask(device="is done")
    first.ask(step=12)
    expected = reference.ask(prompts=[tokens], new=4)
    found = second.ask(prompts=[tokens], new=4)
    assert found["cached"] == [whole_pages(700)]
    assert found["outputs"] == expected["outputs"]


def test_what_is_late_is_published_while_the_engine_decodes(engines, operator):
    """The publication does not need another request."""
    engine = engines[0]
    tokens = prompt(700, seed=9)
    engine.ask(device="is late")
    engine.ask(start=[tokens], new=20)
    engine.ask(step=4)
    assert operator.match_prefix(tokens).matched_tokens == 0
    engine.ask(device="is done")
    engine.ask(step=2)
    assert operator.match_prefix(tokens).matched_tokens >= 640
    engine.ask(step=30)


def test_kv_of_other_weights_is_not_found(engines):
    first, second = engines
    tokens = prompt(130, seed=8)
    first.ask(prompts=[tokens])
    # The first update fails, and the second one succeeds.
    first.ask(update=None)
    assert first.ask(prompts=[tokens])["cached"] == [0]
    first.ask(update="v2")
    assert first.ask(prompts=[tokens])["cached"] == [0]
    assert second.ask(prompts=[tokens])["cached"] == [whole_pages(130)]
    second.ask(update="v2")
    assert second.ask(prompts=[tokens])["cached"] == [whole_pages(130)]


def test_nothing_is_left_over(engines, operator):
    for engine in engines:
        seen = engine.ask(look=True)
        assert seen["leaks"] == 0
        assert (
            seen["available"] + seen["evictable"] + seen["protected"] == seen["total"]
        )
    stats = operator.stats()
    assert (stats.locks, stats.pages.protected) == (0, 0)
