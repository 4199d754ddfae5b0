"""pandod is stopped, or killed and started anew, at each moment of the linker's work: no
engine ends, no token is another, nothing is left over, and the engine finds again."""

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
    """It is killed and started anew."""
    started = serve_blocks(tmp_path_factory.mktemp("k"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def engines(server, engines_of, tmp_path_factory):
    """By model, one over pandod, which waits for it no longer than by default, and one
    alone."""
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
    """Whether a signal has stopped the process."""
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
        # There is something to load.
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
    # A phase of a thread in the background may be still to come.
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
    """SGLang stores a node once: it is never told that it is stored."""
    engine, alone = engines["plain"]
    tokens = prompt(400, seed=5000)
    expected = alone.ask(prompts=[tokens], new=NEW)["outputs"]
    eventually(lambda: finds(engine, tokens, expected))
    server.kill()
    server.start()

    def is_stored_again():
        # Not flushed: the prompt is in the engine's tree all the time.
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
