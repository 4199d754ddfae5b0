"""Pando's manager compared with vLLM's own manager, in random operations."""

import contextlib
import os
import random

import pytest
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.manager_programs import (
    Engine,
    Shared,
    check_what_is_stored,
    run_operations,
)
from engines.vllm.offloading.patience import LONG, be_patient
from eventually import eventually
from pando_kv import Client
from pando_kv.vllm.offloading import scheduler

SEED = int(os.environ.get("PANDO_TEST_SEED", "0"))
PROGRAMS = int(os.environ.get("PANDO_TEST_PROGRAMS", "5"))
OPERATIONS = 1000  # in a program
# More chunks than a program has blocks.
CHUNKS = 8192


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Makes each step look up blocks that are being written, and wait without limit."""
    be_patient(monkeypatch.setattr)
    monkeypatch.setattr(scheduler, "_PENDING_PAUSE", -1.0)
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", LONG)
    monkeypatch.setattr(scheduler, "_HOLD_SECONDS", LONG)


@pytest.mark.parametrize(
    ("memory", "chunks"),
    [("256MiB", CHUNKS), ("4MiB", None)],
    ids=["memory for all", "memory for some"],
)
def test_it_answers_as_the_one_of_vllm(memory, chunks, tmp_path):
    """The answers are equal if there is memory for all blocks. Otherwise only stored
    blocks are found, and a stored block is missing only if it was evicted."""
    found = evicted = 0
    for seed in range(SEED, SEED + PROGRAMS):
        print("seed", seed)
        with running(tmp_path, memory) as (pandod, operator):
            choose, shared = random.Random(seed), Shared(chunks)
            engines = [Engine(pandod.address, name, shared, choose) for name in "ab"]
            found += run_operations(engines, choose, OPERATIONS)
            check_what_is_stored(engines, operator)
            for engine in engines:
                engine.alone.close()
            eventually(lambda operator=operator: nothing_is_held(operator))
            assert operator.check_invariants() == []
            evicted += operator.stats().blocks.evicted_blocks
    print("found", found, "evicted", evicted)
    assert found > 0
    assert chunks is not None or evicted > 0


@contextlib.contextmanager
def running(folder, memory):
    pandod = serve_blocks(
        folder, memory, block_extent="512KiB", block_write_limit="10m"
    )
    with (
        contextlib.closing(pandod),
        Client(pandod.address, name="operator") as operator,
    ):
        yield pandod, operator
