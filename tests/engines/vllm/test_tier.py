"""vLLM engines on a pandod with a disk tier."""

import pytest
from engines.engine_process import closing_all
from engines.vllm.conftest import serve_pool, start_in_pool
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.start import prompt
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client

PAGES = 128
WAITS = {"pando_wait_ms": 60_000}  # longer than any test needs
NEW = 8


@pytest.fixture(scope="module")
def http():
    return free_address()


@pytest.fixture(scope="module")
def pandod(tmp_path_factory, http):
    """Yields a pandod that stores and loads what fits in a quarter of the pool."""
    folder = tmp_path_factory.mktemp("tiered")
    server = serve_pool(
        folder, PAGES, http=http, tier_disk=folder / "tier", tier_disk_bytes="256MiB"
    )
    yield server
    server.close()


@pytest.fixture(scope="module")
def engines(pandod, reference, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waits")
    pair = [start_in_pool(name, model, pandod, folder, PAGES, WAITS) for name in "ab"]
    with closing_all(pair):
        yield pair
        for engine in pair:
            engine.close()


@pytest.fixture
def operator(pandod):
    with Client(pandod.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []


def test_a_prompt_that_was_evicted_is_loaded_from_disk(
    engines, operator, http, reference
):
    """The engine that computed the prompt loads it, and then the other engine does."""

    def figure(name, **labels):
        return MetricsPage(http).sum(name, **labels)

    def copied(direction):
        return figure("pando_tier_copied_pages_total", direction=direction)

    tokens = prompt(740, seed=9000)
    whole = 736 // BLOCK_TOKENS
    stored, found = copied("store"), "pando_prefix_hit_tokens_total"
    hits, hits_of_loaded = figure(found), figure(found, tier="loaded")
    expected = reference.ask(prompts=[tokens], new=NEW)["outputs"]
    first, other = engines
    computed = first.ask(prompts=[tokens], new=NEW)
    assert (computed["cached"], computed["outputs"]) == ([0], expected)
    eventually(lambda: copied("store") >= stored + whole)
    for engine in (first, other):
        eventually(lambda: operator.stats().locks == 0)
        operator.evict(PAGES)
        assert operator.stats().pages.evictable == 0
        loads = copied("load")
        loaded = engine.ask(prompts=[tokens], new=NEW)
        assert (loaded["cached"], loaded["outputs"]) == ([736], expected)
        assert copied("load") == loads + whole
    assert figure(found) == hits + 2 * 736
    assert figure(found, tier="loaded") == hits_of_loaded + 2 * 736


def test_loads_of_a_queue_do_not_evict_each_other(engines, operator, http):
    """Together the prompts are twice as large as the pool."""

    def stored():
        return MetricsPage(http).sum("pando_tier_copied_pages_total", direction="store")

    prompts = [prompt(1000, seed=9050 + i) for i in range(8)]
    whole = 1000 // BLOCK_TOKENS
    _, engine = engines
    for tokens in prompts:
        before = stored()
        engine.ask(prompts=[tokens], new=NEW)
        eventually(lambda before=before: stored() >= before + whole)
        eventually(lambda: operator.stats().locks == 0)
        operator.evict(PAGES)
    loaded = engine.ask(prompts=prompts, new=NEW)
    assert sum(loaded["cached"]) >= 0.8 * 8 * whole * BLOCK_TOKENS
