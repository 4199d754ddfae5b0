"""SGLang engines with requests in flight while pandod drains or is killed."""

import pytest
from engines.engine_process import closing_all
from engines.kept_pool import goes_on_through_kills
from engines.lost_pool import stops_without_a_wrong_token
from engines.models import LAYOUT
from engines.sglang.conftest import serve_pool
from engines.sglang.start import prompt, start_engine
from kept_pandod import kept
from pando_kv import Client


@pytest.fixture
def pandod(tmp_path):
    server = serve_pool(tmp_path, 512)
    yield server
    server.close()


@pytest.fixture
def engine(pandod, model, tmp_path):
    started = start_engine("engine", model, pandod, tmp_path)
    with closing_all([started]):
        yield started


def test_what_runs_while_pandod_drains_comes_to_its_end(engine, pandod, reference):
    """The requests need more pages than the engine holds when the drain begins."""
    load = [prompt(300, seed=7000 + i) for i in range(4)]
    new = 200
    running = engine.ask(start=load, new=new)["ids"]
    engine.ask(step=12)
    with Client(pandod.address, name="operator") as operator:
        operator.drain()
        engine.ask(start=[prompt(100, seed=7100)], new=4)
        assert engine.ask(step=new)["waiting"] == 1
        expected = reference.ask(prompts=load, new=new)["outputs"]
        assert [engine.ask(output=rid)["output"] for rid in running] == expected
        assert operator.stats().locks == 0
    assert "DRAINING" not in engine.log()


@pytest.mark.parametrize(
    ("tokens", "steps"), [(900, 2), (300, 8)], ids=["in prefill", "in decode"]
)
def test_a_pandod_that_is_killed_costs_the_engine_and_no_wrong_token(
    engine, pandod, reference, tokens, steps
):
    load, new = [prompt(tokens, seed=7200 + steps)], 60
    (request,) = engine.ask(start=load, new=new)["ids"]
    engine.ask(step=steps)
    pandod.kill()
    pandod.start()
    with Client(pandod.address, name="waits"):
        (expected,) = reference.ask(prompts=load, new=new)["outputs"]
        stops_without_a_wrong_token(engine, request, expected)


def test_an_engine_goes_on_when_a_kept_pandod_is_killed(model, reference, tmp_path):
    load, new = [prompt(300, seed=7250 + i) for i in range(3)], 60
    with kept(tmp_path, pool_pages=512, model="tiny", **LAYOUT) as pandod:
        engine = start_engine("kept", model, pandod, tmp_path)
        with closing_all([engine]):
            running = engine.ask(start=load, new=new)["ids"]
            expected = reference.ask(prompts=load, new=new)["outputs"]
            goes_on_through_kills(pandod, engine, running, expected)
