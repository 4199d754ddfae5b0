"""Engines whose prompts fit neither in pandod's memory nor in the device's pages."""

import random

import pytest
from engines.engine_process import closing_all
from engines.sglang.linker.conftest import serve_blocks
from engines.sglang.linker.engines import nothing_is_held
from engines.sglang.start import prompt
from eventually import eventually
from pando_kv import Operator

SEED = 7


@pytest.mark.parametrize("kind", ["plain", "windows"])
def test_evictions_and_retractions_change_no_token(
    kind, engines_of, tmp_path_factory, capsys
):
    folder = tmp_path_factory.mktemp("s")
    server = serve_blocks(folder, memory="4MiB", block_extent="1MiB")
    make = engines_of(folder)
    started = [
        make.start("a", kind, server, max_total_tokens=2048),
        make.start("b", kind, server, max_total_tokens=2048, schedule_policy="lpm"),
        make.start("alone", kind),
    ]
    choose = random.Random(SEED)
    beginnings = [prompt(choose.randrange(100, 500), seed=60 + i) for i in range(6)]
    with closing_all(started), Operator(server.address) as operator:
        cached = 0
        for step in range(12):
            batch = [
                choose.choice(beginnings) + prompt(choose.randrange(1, 60), seed=step)
                for _ in range(4)
            ]
            answer = started[step % 2].ask(prompts=batch, new=24)
            expected = started[2].ask(prompts=batch, new=24)
            assert answer["outputs"] == expected["outputs"], f"{SEED=}, {step=}"
            cached += sum(answer["cached"])
        with capsys.disabled():
            print(f"{kind}: {cached} tokens cached, {operator.stats().blocks}")
        assert cached > 0
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []
        for engine in started:
            engine.close()
    server.close()
