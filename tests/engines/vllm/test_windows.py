"""Models with windows, for which vLLM keeps all KV if it has Pando's connector."""

import pytest
from engines.engine_process import closing_all
from engines.vllm.conftest import serve_pool, start_in_pool
from engines.vllm.pool import BLOCK_BYTES
from engines.vllm.start import prompt, whole_blocks
from engines.vllm.window_models import MODELS, make_window_model


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_windows_says_the_same_with_what_is_cached(name, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    layers = make_window_model(name, folder)
    server = serve_pool(tmp_path, 128, layers=layers, page_bytes=layers * BLOCK_BYTES)
    engine = start_in_pool("windows", folder, server, tmp_path, 128)
    lengths = [740, 333, 130]
    prompts = [prompt(length, seed=3000 + length) for length in lengths]
    with closing_all([engine]):
        computed = engine.ask(prompts=prompts, new=20)
        found = engine.ask(prompts=prompts, new=20)
        assert computed["cached"] == [0, 0, 0]
        assert found["cached"] == [whole_blocks(length - 1) for length in lengths]
        assert found["outputs"] == computed["outputs"]
        assert len({tuple(output) for output in found["outputs"]}) == len(lengths)
        engine.close()
    server.close()
