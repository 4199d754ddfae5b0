"""Real engines that take turns over one memory, with conversations, and with a kill of
pandod while one engine runs."""

import contextlib
import itertools

import pytest
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import CONNECTOR
from engines.vllm.start import prompt, whole_blocks
from eventually import eventually
from pando_kv import Client

NEW = 20
SALTED = 3  # the turn with a salt


@pytest.fixture
def server(tmp_path):
    pandod = serve_blocks(tmp_path, "128MiB")
    yield pandod
    pandod.close()


@pytest.fixture
def engines(server, forks, model):
    """Yields two engines over the memory, which also store answers.

    Checks at the end that nothing is held."""
    given = {"model": str(model), "enable_prefix_caching": True, "patient": True}
    given |= {"pando": server.address}
    given |= {"connector": CONNECTOR | {"offload_prompt_only": False}}
    with Client(server.address, name="operator") as operator:
        with contextlib.ExitStack() as stack:
            pair = []
            for name in ("first", "second"):
                pair.append(forks.start(name, **given))
                stack.callback(pair[-1].close)
            yield pair
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []


def said_alone(reference, prompts, new):
    return [reference.ask(prompts=[each], new=new)["outputs"][0] for each in prompts]


def test_conversations_that_cross_engines(engines, reference):
    """Each turn finds all that the other engine has computed, except with a salt."""
    talks = [prompt(100 + 37 * n, seed=10 + n) for n in range(3)]
    computed = [0] * len(talks)
    for turn in range(6):
        salt = {"salt": "tenant"} if turn == SALTED else {}
        talking = talks[: 1 + turn % 3]
        answer = engines[turn % 2].ask(prompts=talking, new=NEW, **salt)
        expected = [0] if salt else computed[: len(talking)]
        assert answer["cached"] == expected, f"turn {turn}"
        assert answer["outputs"] == said_alone(reference, talking, NEW), f"turn {turn}"
        for n, output in enumerate(answer["outputs"]):
            if not salt:
                # The engine does not compute the KV of the last token.
                computed[n] = whole_blocks(len(talks[n]) + NEW - 1)
            talks[n] = talks[n] + output + prompt(9 + turn, seed=100 + turn)


def test_an_engine_goes_on_when_pandod_is_killed_and_begins_anew(
    engines, server, reference
):
    """At the kill, one request has loaded blocks and decodes; the other is in the
    middle of its prompt."""
    first, second = engines
    prompts = [prompt(300, seed=50), prompt(900, seed=51)]
    first.ask(prompts=prompts[:1])
    (loaded,) = second.ask(start=prompts[:1], new=40)["ids"]
    second.ask(step=5)
    (computed,) = second.ask(start=prompts[1:], new=40)["ids"]
    assert second.ask(step=2)["running"] == 2
    begun = [bool(second.ask(output=each)["output"]) for each in (loaded, computed)]
    assert begun == [True, False]
    server.kill()
    assert second.ask(step=10)["done"] == {}
    server.start()
    done = second.ask(step=60)["done"]
    said = [done[request][0] for request in (loaded, computed)]
    assert said == said_alone(reference, prompts, 40)
    assert done[loaded][1] == whole_blocks(300)

    seeds = itertools.count(60)

    def is_found_by_the_other() -> bool:
        later = [prompt(200, seed=next(seeds))]
        answers = [engine.ask(prompts=later, new=NEW) for engine in engines]
        expected = said_alone(reference, later, NEW)
        assert [answer["outputs"] for answer in answers] == [expected] * 2
        return answers[1]["cached"] == [whole_blocks(200)]

    eventually(is_found_by_the_other)
