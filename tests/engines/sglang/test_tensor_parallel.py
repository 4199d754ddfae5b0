"""An SGLang engine of two tensor-parallel ranks, each with half of the heads in its own
shard of the pool."""

import contextlib
import os
import signal
from pathlib import Path

import pytest
from engines.engine_process import closing_all
from engines.models import LAYERS
from engines.sglang.start import prompt, start_full_engine, whole_pages
from eventually import eventually
from pando_kv import Client, Operator
from pandod_process import OPEN, Pandod

RANKS = 2
# A rank's page has K and V of 16 tokens in 4 layers, for one head of 32 float32.
PAGE_BYTES = 2 * 16 * LAYERS * 32 * 4


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """Yields a pandod with an open pool, whose layout the ranks state."""
    folder = tmp_path_factory.mktemp("sharded")
    shards = {"pool_bytes": 512 * PAGE_BYTES, "pool_shards": RANKS}
    server = Pandod(folder, quarantine="1h", **OPEN | shards)
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def engine(sharded, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    # Ranks must agree which requests wait for a tier, even without a tier.
    waits = {"PANDO_WAIT_MS": "60000"}
    sizes = {"page_size": None, "max_total_tokens": None, "tp_size": RANKS}
    engine = start_full_engine(
        "ranks", model, sharded, folder, environment=waits, **sizes
    )
    with closing_all([engine]):
        engine.ready()
        with contextlib.ExitStack() as stack:
            for pid in schedulers(engine):
                stack.callback(_kill, pid)
            yield engine


def schedulers(engine):
    """Returns the process ids of the ranks, in the order of the ranks."""
    titles = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            title = (process / "cmdline").read_text()
            if int(parent) == engine.process.pid and "scheduler" in title:
                titles[title] = int(process.name)
    return [titles[title] for title in sorted(titles)]


def _kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_the_pool_has_the_layout_of_the_ranks(engine, sharded):
    with Client(sharded.address) as client:
        pool = client.pool
    assert (pool.capacity_pages, pool.page_bytes) == (512, PAGE_BYTES)
    assert (pool.layout.heads, pool.layout.page_tokens) == (1, 16)
    assert pool.model == "tiny"


def test_each_rank_maps_its_own_shard_alone(engine):
    first, second = (shards_mapped_by(pid) for pid in schedulers(engine))
    assert len(first) == len(second) == 1
    assert first != second


def shards_mapped_by(pid: int) -> set[str]:
    """Returns the inodes of the pool shards that the process maps."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split()[4] for line in maps if "/memfd:pando-kv" in line}


def test_two_ranks_say_what_one_says_and_find_it_again(engine, reference, sharded):
    prompts = [prompt(600, seed=6000), prompt(90, seed=6001)]
    expected = reference.ask(prompts=prompts, new=20)["outputs"]
    computed = engine.ask(prompts=prompts, new=20)
    assert computed == {"outputs": expected, "cached": [0, 0]}
    found = engine.ask(prompts=prompts, new=20)
    assert found == {
        "outputs": expected,
        "cached": [whole_pages(600 - 1), whole_pages(90 - 1)],
    }
    with Operator(sharded.address) as operator:
        eventually(lambda: operator.stats().locks == 0)
        assert operator.check_invariants() == []


def test_pages_of_a_dead_scheduler_are_kept_while_the_other_rank_may_write(
    engine, sharded
):
    first, second = schedulers(engine)
    engine.send(prompts=[prompt(300, seed=6002)], new=2000)
    with Operator(sharded.address) as operator:
        eventually(lambda: operator.stats().locks == 1)
        # The stopped engine cannot end the second rank when the first one dies, and the
        # stopped second rank cannot end by itself.
        engine.process.send_signal(signal.SIGSTOP)
        os.kill(second, signal.SIGSTOP)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: operator.stats().pages.quarantined > 0)
        (lost,) = operator.quarantine().items
        eventually(lambda: operator.quarantine().items[0].living_pids == [second])
        os.kill(second, signal.SIGKILL)
        eventually(lambda: operator.stats().pages.quarantined == 0)
        assert operator.stats().pages.reserved == 0
        assert operator.check_invariants() == []
