"""vLLM engines that compute in a pool that is too small, and the death of one."""

import pytest
from engines.engine_process import closing_all
from engines.models import LAYERS
from engines.vllm.conftest import start_in_pool
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS
from engines.vllm.start import prompt
from eventually import eventually
from pando_kv import Client
from pandod_process import OPEN, Pandod

PAGES = 64
PAGE_BYTES = LAYERS * BLOCK_BYTES


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Yields a pandod that states only its bytes and the tokens of a page.

    The engines state the rest of the layout."""
    folder = tmp_path_factory.mktemp("small")
    stated = {"pool_bytes": PAGES * PAGE_BYTES, "page_tokens": BLOCK_TOKENS}
    server = Pandod(folder, **OPEN | stated)
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def engines(small, model, reference, tmp_path_factory):
    """Yields two engines, which find out the format of a block by themselves."""
    folder = tmp_path_factory.mktemp("pressed")
    seen, free = {"pando_page_format": ""}, PAGES * PAGE_BYTES
    pair = [
        start_in_pool(name, model, small, folder, PAGES, seen, free) for name in "ab"
    ]
    with closing_all(pair):
        yield pair


def test_requests_that_outgrow_the_pool_are_preempted_and_none_is_wrong(
    engines, reference, small
):
    engine, _ = engines
    prompts = [prompt(350 + 10 * i, seed=1000 + i) for i in range(4)]
    answer = engine.ask(prompts=prompts, new=250)
    expected = [
        reference.ask(prompts=[tokens], new=250)["outputs"][0] for tokens in prompts
    ]
    assert answer["outputs"] == expected
    assert answer["preempted"] > 0
    with Client(small.address) as operator:
        assert operator.check_invariants() == []
        assert operator.stats().locks == 0


def test_both_serve_at_once_from_a_pool_that_is_too_small(engines, reference, small):
    loads = [[prompt(300, seed=1100 + 10 * e + i) for i in range(4)] for e in range(2)]
    for engine, load in zip(engines, loads, strict=True):
        engine.send(prompts=load, new=60)
    answers = [engine.answer() for engine in engines]
    for answer, load in zip(answers, loads, strict=True):
        assert answer["outputs"] == reference.ask(prompts=load, new=60)["outputs"]
    with Client(small.address) as operator:
        assert operator.stats().locks == 0
        assert operator.check_invariants() == []


def test_an_engine_that_is_killed_in_decode_leaves_nothing(engines, reference, small):
    victim, other = engines
    victim.ask(start=[prompt(200, seed=1200 + i) for i in range(2)], new=80)
    victim.ask(step=8)
    with Client(small.address) as operator:
        assert operator.stats().locks > 0
        victim.kill()
        eventually(lambda: operator.stats().locks == 0)
        eventually(lambda: operator.stats().pages.quarantined == 0)
        # The other engine keeps some pages for its next requests.
        others = [session.reserved_pages for session in operator.sessions().items]
        assert operator.stats().pages.reserved == sum(others)
        assert len([pages for pages in others if pages]) <= 1
        assert operator.check_invariants() == []
    tokens = prompt(200, seed=1200)
    answer = other.ask(prompts=[tokens], new=40)
    assert answer["outputs"] == reference.ask(prompts=[tokens], new=40)["outputs"]
