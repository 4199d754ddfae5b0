"""SGLang engines with requests in flight while pandod is stopped for a while."""

import contextlib
import os
import signal

import pytest
from engines.engine_process import closing_all
from engines.sglang.conftest import serve_pool
from engines.sglang.start import prompt, start_engine
from eventually import eventually
from pando_kv import Client

NEW = 80
STEPS = 200


@pytest.fixture(scope="module")
def pandod(tmp_path_factory):
    server = serve_pool(tmp_path_factory.mktemp("stopped"), 512)
    yield server
    server.close()


@pytest.fixture(scope="module")
def engine(pandod, model, tmp_path_factory):
    started = start_engine("engine", model, pandod, tmp_path_factory.mktemp("engine"))
    with closing_all([started]):
        yield started


@contextlib.contextmanager
def stopped(pandod):
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pandod.pid, signal.SIGCONT)


def test_what_runs_and_what_waits_come_to_their_end(engine, pandod, reference, capsys):
    load = [prompt(300, seed=8000 + i) for i in range(4)]
    expected = reference.ask(prompts=load, new=NEW)["outputs"]
    running = engine.ask(start=load[:2], new=NEW)["ids"]
    engine.ask(step=8)
    with stopped(pandod):
        waiting = engine.ask(start=load[2:], new=NEW)["ids"]
        # These steps find out that pandod is away.
        found = engine.ask(step=2)
        seen = engine.ask(step=STEPS)
        # pandod is away in all of these steps, so no step makes a call.
        assert seen["calls"] == found["calls"]
        # One of the running requests may have been retracted for the other.
        assert seen["waiting"] >= 2
        with capsys.disabled():
            print(
                f"longest step: {1000 * found['longest']:.0f} ms, then "
                f"{1000 * seen['longest']:.0f} of {STEPS}"
            )
    with Client(pandod.address, name="operator") as operator:
        eventually(lambda: engine.ask(step=4)["waiting"] == 0)
        engine.ask(step=2 * NEW)
        said = [engine.ask(output=request)["output"] for request in running + waiting]
        assert said == expected
        eventually(lambda: operator.stats().locks == 0)
        stats = operator.stats()
        # The engine may keep two stashes of 8 pages.
        assert stats.pages.reserved <= 2 * 8
        assert operator.check_invariants() == []
    assert engine.log().count("pandod answers again") == 1
    assert engine.log().count("it is not asked until it answers again") == 1


def test_what_is_computed_then_is_found_by_others(engine, pandod):
    """The engine publishes again after pandod was away."""
    tokens = prompt(200, seed=8100)
    engine.ask(prompts=[tokens])
    with Client(pandod.address, name="operator") as operator:
        assert operator.match_prefix(tokens).matched_tokens == 192
