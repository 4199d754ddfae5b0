"""Starts of SGLang with Pando, and their refusals."""

import pytest
from engines.engine_process import EngineDied, closing_all
from engines.models import LAYERS, LAYOUT
from engines.sglang.start import prompt, start_engine, start_full_engine
from pando_kv import Client
from pando_kv._model_digest import model_digest
from pandod_process import Pandod


@pytest.fixture
def of_vllm(tmp_path):
    """Yields a pandod whose pages are as large as SGLang's but have another format."""
    heads, head_size, page_tokens = 2, 32, 16
    layer_bytes = 2 * page_tokens * heads * head_size * 4
    pages = {
        "page_tokens": page_tokens,
        "layers": LAYERS,
        "page_bytes": LAYERS * layer_bytes,
        "page_format": "of vLLM",
    }
    by_heads = dict.fromkeys(("heads", "head_size", "dtype"))
    folder = tmp_path / "of vllm"
    folder.mkdir()
    server = Pandod(folder, pool_pages=512, model="tiny", **pages, **by_heads)
    server.start()
    yield server
    server.close()


@pytest.fixture
def of_another_rope(tmp_path):
    """Yields a pandod with KV of a model that differs only in its rope."""
    folder = tmp_path / "of another rope"
    folder.mkdir()
    server = Pandod(folder, pool_pages=512, model="tiny", **LAYOUT)
    server.start()
    twin = {"rope_theta": 500_000.0}
    with Client(server.address, name="twin") as worker:
        worker.attach_pool(model="tiny", model_digest=model_digest(twin)).close()
        yield server
    server.close()


def test_engines_that_do_not_fit_are_refused(
    model, roomy, of_vllm, of_another_rope, tmp_path
):
    engines = {
        "but the pool has KV of": start_engine(
            "rope", model, of_another_rope, tmp_path
        ),
        "model is 'other', the pool's is 'tiny'": start_engine(
            "model", model, roomy, tmp_path, served_model_name="other"
        ),
        "this engine does not fit the pool of pandod": start_engine(
            "inside", model, of_vllm, tmp_path
        ),
        "--page-size 16 --max-total-tokens 8176": start_engine(
            "size", model, roomy, tmp_path, max_total_tokens=4096
        ),
    }
    with closing_all(list(engines.values())):
        for said, engine in engines.items():
            with pytest.raises(EngineDied):
                engine.ready()
            assert said in engine.log()


def test_sglang_finds_the_package_by_its_entry_points_alone(
    model, roomy, reference, tmp_path
):
    """SGLang's own Engine runs with its processes and without options for its size."""
    tokens = prompt(500, seed=5000)
    sizes = {"page_size": None, "max_total_tokens": None}
    engine = start_full_engine("full", model, roomy, tmp_path, **sizes)
    with closing_all([engine]):
        answer = engine.ask(prompts=[tokens, tokens])
        expected = reference.ask(prompts=[tokens])["outputs"][0]
        assert answer["outputs"] == [expected, expected]
        assert answer["cached"] == [0, 496]
        with Client(roomy.address) as operator:
            assert operator.match_prefix(tokens).matched_tokens == 496
        engine.close()
