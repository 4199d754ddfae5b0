"""Stops and restarts of pandod at each moment of the linker's work. No engine ends, no
token changes, nothing stays held, and the engine finds blocks again afterwards."""

import os
import signal
from pathlib import Path

import pytest
from engines.engine_process import closing_all
from engines.sglang.linker.conftest import serve_blocks
from engines.sglang.linker.engines import finds, nothing_is_held
from engines.sglang.phases import PHASES
from engines.sglang.start import prompt
from eventually import eventually
from pando_kv import Operator

NEW = 12
LOADS = ("lookup", "acquire", "start of a load", "copy of a load", "release")
MODELS = {"plain": tuple(PHASES), "windows": ("acquire", "copy of a load", "publish")}
CASES = [(model, phase) for model, phases in MODELS.items() for phase in phases]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yields a pandod that the tests kill and start again."""
    started = serve_blocks(tmp_path_factory.mktemp("k"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def engines(server, engines_of, tmp_path_factory):
    """Yields two engines for each model: one on pandod, which waits for pandod only as
    long as by default, and one with its own cache alone."""
    make = engines_of(tmp_path_factory.mktemp("engines"))
    by_model = {
        model: (
            make.start(f"{model} engine", model, server, wait_ms=None),
            make.start(f"{model} alone", model),
        )
        for model in MODELS
    }
    all_of_them = [engine for pair in by_model.values() for engine in pair]
    with closing_all(all_of_them):
        yield by_model
        for engine in all_of_them:
            engine.close()


def is_stopped(pid):
    """Returns whether a signal has stopped the process."""
    return "State:\tT" in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize(("model", "phase"), CASES)
def test_an_engine_goes_on(server, engines, model, phase, how, capsys):
    engine, alone = engines[model]
    seed = 1000 + 10 * CASES.index((model, phase)) + (how == "killed")
    tokens = prompt(300, seed=seed)
    others = [prompt(90 + i, seed=seed + 1000 * i) for i in range(1, 4)]
    expected = alone.ask(prompts=[tokens], new=NEW)["outputs"]
    others_expected = alone.ask(prompts=others, new=NEW)["outputs"]
    if phase in LOADS:
        # Puts the prompt into the store, for the engine to load.
        eventually(lambda: finds(engine, tokens, expected))
        engine.ask(flush=True)

    send = "SIGSTOP" if how == "stopped" else "SIGKILL"
    engine.ask(interrupt=phase, pid=server.pid, signal=send)
    answer = engine.ask(prompts=[tokens], new=NEW)
    meanwhile = engine.ask(prompts=others, new=NEW)
    with capsys.disabled():
        longest, waited = (
            1000 * max(answer[which], meanwhile[which])
            for which in ("longest", "waited")
        )
        print(
            f"{model}, {how} in {phase}: the longest step took {longest:.0f} ms, and "
            f"none waited longer than {waited:.0f}"
        )
    # A background thread may reach the phase later than the answers come.
    if how == "stopped":
        eventually(lambda: is_stopped(server.pid))
        os.kill(server.pid, signal.SIGCONT)
    else:
        eventually(lambda: not server.running)
        server.start()

    assert answer["outputs"] == expected
    assert meanwhile["outputs"] == others_expected
    assert answer["aborted"] + meanwhile["aborted"] == [False] * 4
    eventually(lambda: finds(engine, tokens, expected))
    with Operator(server.address) as operator:
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []


def test_what_is_resident_is_offered_to_a_new_pandod(server, engines):
    """SGLang itself offers a node only once, so the linker must offer it again."""
    engine, alone = engines["plain"]
    tokens = prompt(400, seed=5000)
    expected = alone.ask(prompts=[tokens], new=NEW)["outputs"]
    eventually(lambda: finds(engine, tokens, expected))
    server.kill()
    server.start()

    def is_stored_again():
        # Without a flush, the prompt stays in the engine's tree.
        assert engine.ask(prompts=[tokens], new=NEW)["cached"] == [384]
        with Operator(server.address) as operator:
            return operator.stats().blocks.evictable_blocks >= 25

    eventually(is_stored_again)
    eventually(lambda: finds(engine, tokens, expected))


def test_an_engine_starts_while_pandod_is_away(engines_of, server, tmp_path, engines):
    alone = engines["plain"][1]
    tokens = prompt(200, seed=5100)
    expected = alone.ask(prompts=[tokens], new=NEW)["outputs"]
    server.kill()
    late = engines_of(tmp_path).start("late", "plain", server)
    with closing_all([late]):
        assert late.ask(prompts=[tokens], new=NEW)["outputs"] == expected
        server.start()
        eventually(lambda: finds(late, tokens, expected))
        late.close()
