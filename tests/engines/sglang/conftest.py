"""Fixtures with SGLang engines. An engine starts once for many tests, because each
start takes half a minute of a core."""

import os

# SGLang reads the variable once, when the first test imports SGLang.
os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")

import pytest
from engines.engine_process import EngineProcess, closing_all
from engines.models import LAYOUT, make_model
from engines.sglang.start import start_engine
from pandod_process import Pandod


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def reference(model, tmp_path_factory) -> EngineProcess:
    """Yields an SGLang engine with its own cache, to compute the expected tokens."""
    engine = start_engine(
        "reference", model, None, tmp_path_factory.mktemp("reference")
    )
    with closing_all([engine]):
        yield engine
        engine.close()


def serve_pool(folder, pages):
    server = Pandod(folder, pool_pages=pages, model="tiny", **LAYOUT)
    server.start()
    return server


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    """Yields a pandod with room for all prompts."""
    server = serve_pool(tmp_path_factory.mktemp("roomy"), 512)
    yield server
    server.close()


@pytest.fixture(scope="module")
def engines(roomy, reference, model, tmp_path_factory):
    """Yields two engines on one pandod.

    The first ranks its queue by longest prefix. The second gets no options for its
    size, and finds less free memory than half of the pool."""
    folder = tmp_path_factory.mktemp("engines")
    pair = [
        start_engine("a", model, roomy, folder, schedule_policy="lpm"),
        start_engine(
            "b",
            model,
            roomy,
            folder,
            page_size=None,
            max_total_tokens=None,
            free_gb=[0.009, 0.007],
        ),
    ]
    with closing_all(pair):
        yield pair
        for engine in pair:
            engine.close()
