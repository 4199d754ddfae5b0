"""Cuts of the engine's connection at several moments of its work. Its session goes on,
or is lost, and then the engine opens another one."""

import os
import signal
from functools import partial

import pytest
from cutter import Cutter
from engines.engine_process import closing_all
from engines.sglang.linker.conftest import serve_blocks
from engines.sglang.linker.engines import finds, nothing_is_held
from engines.sglang.start import prompt
from eventually import eventually
from metrics_page import free_address
from pando_kv import Operator

NEW = 12
PHASES = ("acquire", "start of a load", "copy of a load", "reserve", "publish")


@pytest.mark.parametrize("grace", ["1h", "1ms"])
def test_no_token_differs_and_the_engine_finds_again(
    grace, engines_of, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("c")
    # pandod gives its memory through a relay in another process only over TCP.
    tcp = free_address()
    server = serve_blocks(folder, session_grace=grace, tcp=tcp, tcp_insecure="yes")
    make = engines_of(folder)
    with Cutter(folder / "cut", tcp) as cutter:
        engine = make.start("engine", "plain", cutter)
        alone = make.start("alone", "plain")
        signal.signal(signal.SIGUSR1, lambda *_: cutter.cut())
        with closing_all([engine, alone]), Operator(server.address) as operator:
            for number, phase in enumerate(PHASES):
                tokens = prompt(300 + number, seed=7000 + number)
                expected = alone.ask(prompts=[tokens], new=NEW)["outputs"]
                if "load" in phase or phase == "acquire":
                    eventually(partial(finds, engine, tokens, expected))
                    engine.ask(flush=True)
                engine.ask(interrupt=phase, pid=os.getpid(), signal="SIGUSR1")
                answer = engine.ask(prompts=[tokens], new=NEW)
                assert answer["outputs"] == expected, phase
                assert answer["aborted"] == [False]
                eventually(partial(finds, engine, tokens, expected))
                eventually(lambda: nothing_is_held(operator))
            assert operator.check_invariants() == []
            engine.close()
            alone.close()
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    server.close()
