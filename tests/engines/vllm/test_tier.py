"""vLLM over a pandod with a disk tier."""

import pytest
from engines.engine_process import closing_all
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.start import prompt, start_engine
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client

PAGES = 128


@pytest.fixture
def http():
    return free_address()


@pytest.fixture
def pandod(tmp_path, http):
    """A prompt is stored and loaded as far as it fits into a quarter of the pool."""
    server = serve_pool(
        tmp_path,
        PAGES,
        http=http,
        tier_disk=tmp_path / "tier",
        tier_disk_bytes="256MiB",
    )
    yield server
    server.close()


@pytest.fixture
def engine(pandod, model, tmp_path):
    waits = {"pando_wait_ms": 60_000}  # longer than any test needs
    started = start_engine("waits", model, pandod, tmp_path, connector=waits)
    with closing_all([started]):
        yield started
        started.close()


def test_a_prompt_that_was_evicted_is_loaded_from_disk(engine, pandod, http, reference):
    tokens, new = prompt(740, seed=9000), 8
    whole = 736 // BLOCK_TOKENS
    expected = reference.ask(prompts=[tokens], new=new)["outputs"]
    computed = engine.ask(prompts=[tokens], new=new)
    assert (computed["cached"], computed["outputs"]) == ([0], expected)
    eventually(lambda: MetricsPage(http).sum("pando_tier_pages") >= whole)
    with Client(pandod.address, name="operator") as operator:
        eventually(lambda: operator.stats().locks == 0)
        operator.evict(PAGES)
        assert operator.stats().pages.evictable == 0
        loaded = engine.ask(prompts=[tokens], new=new)
        assert (loaded["cached"], loaded["outputs"]) == ([736], expected)
        assert (
            MetricsPage(http).sum("pando_tier_copied_pages_total", direction="load")
            == whole
        )
        assert operator.check_invariants() == []
