"""vLLM engines with requests in flight while pandod drains or is killed."""

import pytest
from engines.engine_process import closing_all
from engines.kept_pool import goes_on_through_kills
from engines.lost_pool import stops_without_a_wrong_token
from engines.vllm.conftest import POOL, serve_pool, start_in_pool
from engines.vllm.start import prompt
from kept_pandod import kept
from pando_kv import Client

PAGES = 96
IN_FLIGHT = pytest.mark.parametrize(
    ("tokens", "steps"), [(900, 2), (300, 8)], ids=["in prefill", "in decode"]
)


@pytest.fixture
def pandod(tmp_path):
    server = serve_pool(tmp_path, PAGES)
    yield server
    server.close()


@pytest.fixture
def engine(pandod, model, tmp_path):
    engine = start_in_pool("engine", model, pandod, tmp_path, PAGES)
    with closing_all([engine]):
        yield engine


@IN_FLIGHT
def test_a_pandod_that_is_killed_ends_an_engine_and_no_token_is_wrong(
    engine, pandod, reference, tokens, steps
):
    load, new = [prompt(tokens, seed=7200 + steps)], 40
    (request,) = engine.ask(start=load, new=new)["ids"]
    engine.ask(step=steps)
    pandod.kill()
    pandod.start()
    with Client(pandod.address, name="waits"):
        (expected,) = reference.ask(prompts=load, new=new)["outputs"]
        stops_without_a_wrong_token(engine, request, expected)


def test_what_runs_while_pandod_drains_comes_to_its_end(engine, pandod, reference):
    """The requests need more blocks than the engine holds when the drain begins."""
    load, new = [prompt(200, seed=7400 + i) for i in range(4)], 150
    running = engine.ask(start=load, new=new)["ids"]
    engine.ask(step=8)
    with Client(pandod.address, name="operator") as operator:
        operator.drain()
        later = prompt(100, seed=7500)
        running += engine.ask(start=[later], new=new)["ids"]
        engine.ask(step=2 * new)
        assert [engine.ask(output=rid)["output"] for rid in running] == [
            reference.ask(prompts=[each], new=new)["outputs"][0]
            for each in (*load, later)
        ]
        assert operator.match_prefix(later).matched_tokens == 0
        assert operator.stats().locks == 0


def test_an_engine_goes_on_when_a_kept_pandod_is_killed(model, reference, tmp_path):
    load, new = [prompt(300, seed=7600 + i) for i in range(3)], 60
    with kept(tmp_path, pool_pages=PAGES, **POOL) as pandod:
        engine = start_in_pool("kept", model, pandod, tmp_path, PAGES)
        with closing_all([engine]):
            running = engine.ask(start=load, new=new)["ids"]
            expected = reference.ask(prompts=load, new=new)["outputs"]
            goes_on_through_kills(pandod, engine, running, expected)
