"""Random programs of two engines over a memory that is too small for both, with late
transfers. Each step reads only KV of its own requests, and nothing stays held."""

import os
import random

import pytest
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import WINDOWS, EngineAlone
from engines.vllm.offloading.late_copies import do_copies_late
from engines.vllm.offloading.programs import run_program
from engines.vllm.offloading.stopped_server import StoppableServer
from eventually import eventually
from pando_kv import Client

SEED = int(os.environ.get("PANDO_TEST_SEED", "0"))
PROGRAMS = int(os.environ.get("PANDO_TEST_PROGRAMS", "50"))


@pytest.mark.parametrize("windows", [(None,), WINDOWS], ids=["plain", "windows"])
@pytest.mark.parametrize("is_faulty", [False, True], ids=["", "with silences"])
def test_programs_read_only_what_is_theirs(
    windows, is_faulty, model, tmp_path, monkeypatch
):
    choose = random.Random(SEED)
    do_copies_late(monkeypatch, lambda count: choose.randrange(count + 1))
    pandod = serve_blocks(tmp_path, "6MiB", block_extent="512KiB", session_grace="2s")
    server = StoppableServer(pandod)
    decoded = {"offload_prompt_only": False}
    engines = [
        EngineAlone(model, pandod.address, windows=windows, options=decoded),
        EngineAlone(model, pandod.address, windows=windows, blocks=40),
    ]
    found = 0
    with Client(pandod.address, name="operator") as operator:
        for seed in range(SEED, SEED + PROGRAMS):
            print("seed", seed)
            choose.seed(seed)
            found += run_program(
                engines, choose, str(seed), server if is_faulty else None
            )
            eventually(lambda: nothing_is_held(operator))
            assert operator.check_invariants() == []
        print("found", found, "evicted", operator.stats().blocks.evicted_blocks)
    assert found > 0
    for engine in engines:
        engine.close()
    pandod.close()
