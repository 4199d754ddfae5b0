"""mini-SGLang engines with requests in flight while pandod drains, stops or dies."""

import os
import signal

import pytest
from engines.engine_process import closing_all
from engines.kept_pool import goes_on_through_kills
from engines.lost_pool import stops_without_a_wrong_token
from engines.minisgl.conftest import page_bytes, serve_open_pool
from engines.sglang.start import prompt
from eventually import eventually
from kept_pandod import kept
from pando_kv import Client
from pandod_process import OPEN


@pytest.fixture
def pandod(tmp_path):
    """Yields a pandod with an open pool, which is open again after a restart."""
    server = serve_open_pool(tmp_path, 512)
    yield server
    server.close()


@pytest.fixture
def engine(pandod, start_engine, tmp_path):
    started = start_engine("engine", pandod, tmp_path, num_page_override=None)
    with closing_all([started]):
        yield started


@pytest.mark.parametrize(
    ("tokens", "steps"), [(900, 2), (300, 8)], ids=["in prefill", "in decode"]
)
def test_a_pandod_that_is_killed_costs_the_engine_and_no_wrong_token(
    engine, pandod, reference, tokens, steps
):
    load, new = [prompt(tokens, seed=7200 + steps)], 40
    engine.ask(start=load, new=new)
    engine.ask(step=steps)
    pandod.kill()
    pandod.start()
    with Client(pandod.address, name="waits"):
        (expected,) = reference.ask(prompts=load, new=new)["outputs"]
        stops_without_a_wrong_token(engine, 0, expected)


def test_no_step_asks_a_pandod_that_is_known_to_be_away(engine, pandod, reference):
    # The engine runs 16 requests at once, so two of the 18 wait for their turn, and
    # then for their pages.
    load, new = [prompt(64, seed=7250 + i) for i in range(18)], 20
    engine.ask(start=load, new=new)
    before = engine.ask(step=8)
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        found = engine.ask(step=30)
        assert found["calls"] != before["calls"]
        assert engine.ask(step=100)["calls"] == found["calls"]
    finally:
        os.kill(pandod.pid, signal.SIGCONT)
    expected = reference.ask(prompts=load, new=new)["outputs"]

    def is_done():
        engine.ask(step=4)
        return all(len(engine.ask(output=u)["output"]) == new for u in range(18))

    eventually(is_done)
    said = [engine.ask(output=uid)["output"] for uid in range(len(load))]
    assert said == expected
    with Client(pandod.address, name="operator") as operator:
        eventually(lambda: operator.stats().locks == 0)
        assert operator.check_invariants() == []


def test_what_runs_while_pandod_drains_comes_to_its_end(engine, pandod, reference):
    load, new = [prompt(300, seed=7300)], 60
    engine.ask(start=load, new=new)
    engine.ask(step=8)
    with Client(pandod.address, name="operator") as operator:
        operator.drain()
        engine.ask(step=new)
        expected = reference.ask(prompts=load, new=new)["outputs"]
        assert [engine.ask(output=0)["output"]] == expected
        assert operator.stats().locks == 0


def test_an_engine_goes_on_when_a_kept_pandod_is_killed(
    start_engine, reference, tmp_path
):
    """The pool has the layout of the engine again after each death."""
    load, new = [prompt(300, seed=7350 + i) for i in range(3)], 60
    with kept(tmp_path, **OPEN | {"pool_bytes": 512 * page_bytes()}) as pandod:
        engine = start_engine("kept", pandod, tmp_path, num_page_override=None)
        with closing_all([engine]):
            engine.ask(start=load, new=new)
            expected = reference.ask(prompts=load, new=new)["outputs"]
            goes_on_through_kills(pandod, engine, range(len(load)), expected)
