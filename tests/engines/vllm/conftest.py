"""Fixtures with vLLM engines. An engine starts once for many tests, because each start
takes half a minute of a core."""

import pytest
from engines.engine_process import EngineProcess, closing_all
from engines.models import make_model
from engines.vllm.pool import BLOCK_TOKENS, POOL
from engines.vllm.start import start_engine
from pandod_process import Pandod


def serve_pool(folder, pages, **options):
    server = Pandod(folder, pool_pages=pages, **(POOL | options))
    server.start()
    return server


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def reference(model, tmp_path_factory) -> EngineProcess:
    """Yields a vLLM engine without Pando and without any prefix cache."""
    engine = start_engine(
        "reference", model, None, tmp_path_factory.mktemp("reference")
    )
    with closing_all([engine]):
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    """Yields a pandod with room for all prompts."""
    server = serve_pool(tmp_path_factory.mktemp("roomy"), 512)
    yield server
    server.close()


def start_in_pool(
    name, model, pandod, folder, pages, connector=None, free_bytes=1 << 20, **arguments
):
    """Starts an engine that gets no size options and finds little memory free."""
    sizes = {
        "block_size": None,
        "kv_cache_memory_bytes": None,
        "max_model_len": min(4096, pages // 2 * BLOCK_TOKENS),
    }
    return start_engine(
        name,
        model,
        pandod,
        folder,
        connector=connector,
        enable_prefix_caching=True,
        free_bytes=free_bytes,
        **sizes | arguments,
    )


@pytest.fixture(scope="module")
def engines(roomy, reference, model, tmp_path_factory):
    """Yields two engines that compute in one pool."""
    folder = tmp_path_factory.mktemp("engines")
    pair = [start_in_pool(name, model, roomy, folder, 512) for name in "ab"]
    with closing_all(pair):
        yield pair
        for engine in pair:
            engine.close()
