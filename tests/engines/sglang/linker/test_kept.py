"""Kills of a pandod under pando-keeper while engines use its blocks. No engine ends, no
token changes, and a later engine finds what was stored before."""

import contextlib

import pytest
from engines.engine_process import closing_all
from engines.sglang.linker.conftest import MEMORY
from engines.sglang.linker.engines import finds, nothing_is_held
from engines.sglang.start import prompt
from eventually import eventually
from kept_pandod import kept
from pando_kv import Operator

NEW = 12
PHASES = ("acquire", "copy of a load", "reserve", "copy to blocks", "publish")


@pytest.mark.parametrize("model", ["plain", "windows"])
def test_an_engine_that_comes_later_finds_what_was_stored_before_deaths(
    engines_of, tmp_path, model
):
    make = engines_of(tmp_path)
    with kept(tmp_path, **MEMORY) as server, contextlib.ExitStack() as stack:
        alone = make.start("alone", model)
        engine = make.start("engine", model, server)
        stack.enter_context(closing_all([alone, engine]))
        first = prompt(400, seed=1)
        expected = alone.ask(prompts=[first], new=NEW)["outputs"]
        eventually(lambda: finds(engine, first, expected))
        for seed, phase in enumerate(PHASES, 2):
            tokens = prompt(300, seed=seed)
            own = alone.ask(prompts=[tokens], new=NEW)["outputs"]
            engine.ask(flush=True)
            engine.ask(interrupt=phase, pid=server.server_pid, signal="SIGKILL")
            # The engine loads the first prompt and stores the other one.
            answer = engine.ask(prompts=[first, tokens], new=NEW)
            assert answer["outputs"] == expected + own
            assert answer["aborted"] == [False] * 2
            eventually(lambda tokens=tokens, own=own: finds(engine, tokens, own))
        later = make.start("later", model, server)
        stack.enter_context(closing_all([later]))
        answer = later.ask(prompts=[first], new=NEW)
        assert answer["outputs"] == expected
        assert answer["cached"][0] > 0
        with Operator(server.address) as operator:
            eventually(lambda: nothing_is_held(operator))
            assert operator.check_invariants() == []
        for one in (alone, engine, later):
            one.close()
    assert server.log().count("blocks of the pandod before are taken over") == len(
        PHASES
    )
