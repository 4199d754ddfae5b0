"""Fixtures with mini-SGLang. No package index has it, so the environment variable
PANDO_MINISGL names the folder with its sources."""

import os
from pathlib import Path

import pytest
from engines.engine_process import EngineProcess, closing_all
from engines.models import LAYERS, LAYOUT, make_model
from pandod_process import OPEN, Pandod

# 64 is the smallest head size that mini-SGLang supports.
HEAD_SIZE = 64
SCRIPT = Path(__file__).parent / "engine.py"


@pytest.fixture(scope="session")
def sources() -> str:
    """Returns the folder that has the package `minisgl`."""
    folder = os.environ.get("PANDO_MINISGL")
    if not folder:
        pytest.skip("PANDO_MINISGL does not say where mini-SGLang's package is")
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"), head_size=HEAD_SIZE)


@pytest.fixture(scope="session")
def start_engine(sources, model):
    def start(name, pandod, folder, **arguments) -> EngineProcess:
        given = {
            "sources": sources,
            "model_path": str(model),
            "pando": pandod is not None,
        }
        environment = {"PANDO_MODEL": "tiny"}
        if pandod is not None:
            environment["PANDO_ADDRESS"] = pandod.address
        return EngineProcess(
            SCRIPT, given | arguments, folder / f"{name}.log", **environment
        )

    return start


@pytest.fixture(scope="session")
def reference(start_engine, tmp_path_factory):
    """Yields a mini-SGLang engine with its own cache, without Pando."""
    engine = start_engine("reference", None, tmp_path_factory.mktemp("reference"))
    with closing_all([engine]):
        yield engine
        engine.close()


def page_bytes():
    return 2 * 16 * LAYERS * LAYOUT["heads"] * HEAD_SIZE * 4


def serve_open_pool(folder, pages):
    server = Pandod(folder, **OPEN | {"pool_bytes": pages * page_bytes()})
    server.start()
    return server


def serve_pool(folder, pages):
    layout = LAYOUT | {"head_size": HEAD_SIZE}
    server = Pandod(folder, pool_pages=pages, model="tiny", **layout)
    server.start()
    return server


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    server = serve_pool(tmp_path_factory.mktemp("roomy"), 512)
    yield server
    server.close()


@pytest.fixture(scope="module")
def engines(roomy, start_engine, tmp_path_factory):
    """Yields two engines on one pandod; the second gets no option for its size."""
    folder = tmp_path_factory.mktemp("engines")
    pair = [
        start_engine("a", roomy, folder),
        start_engine("b", roomy, folder, num_page_override=None),
    ]
    with closing_all(pair):
        yield pair
        for engine in pair:
            engine.close()
