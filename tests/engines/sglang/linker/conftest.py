"""Fixtures with engines on the blocks of one pandod. The engines are forks of one
process that has imported SGLang."""

import pytest
from engines.engine_process import EngineProcess, closing_all
from engines.models import make_model
from engines.sglang.linker.engines import HERE, Engines
from engines.sglang.odd_models import MODELS, make_odd_model
from pandod_process import Pandod

# Extents are small because each kind has its own extents, and each version of the
# weights is a kind.
MEMORY = {"memory": "64MiB", "block_extent": "1MiB"}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Returns the folders of the models, by the name of the model."""
    folder = tmp_path_factory.mktemp("models")
    odd = {name: make_odd_model(name, folder / name) for name in MODELS}
    return {"plain": make_model(folder / "plain")} | odd


@pytest.fixture(scope="session")
def zygote(tmp_path_factory):
    folder = tmp_path_factory.mktemp("z")
    modules = ["llama", *(module for _, module in MODELS.values())]
    asked = {"socket": str(folder / "z"), "models": modules}
    process = EngineProcess(HERE / "zygote.py", asked, folder / "log")
    with closing_all([process]):
        process.ready()
        yield asked["socket"]


@pytest.fixture(scope="session")
def engines_of(zygote, models):
    """Returns a function that makes Engines whose logs are in a folder."""
    return lambda folder: Engines(zygote, models, folder)


def serve_blocks(folder, **options):
    server = Pandod(folder, **(MEMORY | options))
    server.start()
    return server


@pytest.fixture(scope="module")
def pandod(tmp_path_factory):
    """Yields a pandod with room for all prompts."""
    server = serve_blocks(tmp_path_factory.mktemp("p"))
    yield server
    server.close()
