"""What an SGLang with Pando says when it cannot start, and how it is started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines.engine_process import QUIET, EngineDied, closing_all
from engines.models import LAYERS
from engines.sglang.conftest import serve_pool
from engines.sglang.start import prompt, start_engine
from pando_kv import Client
from pandod_process import Pandod

HERE = Path(__file__).parent


def test_another_model_is_refused_at_the_start(model, roomy, tmp_path):
    engine = start_engine("other", model, roomy, tmp_path, served_model_name="other")
    with closing_all([engine]):
        with pytest.raises(EngineDied):
            engine.ready()
        assert "model is 'other', the pool's is 'tiny'" in engine.log()
        assert "start pandod with what the engine has" in engine.log()


def test_pages_of_vllm_are_refused_though_they_have_as_many_bytes(model, tmp_path):
    heads, head_size, page_tokens = 2, 32, 16
    layer_bytes = 2 * page_tokens * heads * head_size * 4
    pages = {
        "page_tokens": page_tokens,
        "layers": LAYERS,
        "page_bytes": LAYERS * layer_bytes,
        "page_format": "of vLLM",
    }
    by_heads = dict.fromkeys(("heads", "head_size", "dtype"))
    server = Pandod(tmp_path, pool_pages=512, model="tiny", **pages, **by_heads)
    server.start()
    engine = start_engine("vllms", model, server, tmp_path)
    with closing_all([engine]):
        with pytest.raises(EngineDied):
            engine.ready()
        assert "this engine does not fit the pool of pandod" in engine.log()
    server.close()


def test_an_engine_of_another_size_is_told_its_size(model, tmp_path):
    server = serve_pool(tmp_path, 64)
    engine = start_engine("large", model, server, tmp_path)
    with closing_all([engine]):
        with pytest.raises(EngineDied):
            engine.ready()
        assert "--page-size 16 --max-total-tokens 1008" in engine.log()
    server.close()


def test_sglang_finds_the_package_by_its_entry_points_alone(
    model, roomy, reference, tmp_path
):
    """The Engine of SGLang's own, with its processes."""
    tokens = prompt(500, seed=5000)
    done = subprocess.run(
        [sys.executable, HERE / "full_engine.py", model, json.dumps([tokens, tokens])],
        env=os.environ | QUIET | {"PANDO_ADDRESS": roomy.address},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "log").open("wb"),
        timeout=1000,
        text=True,
    )
    assert done.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    answers = [
        json.loads(line[2:]) for line in done.stdout.splitlines() if line[:2] == "@@"
    ]
    expected = reference.ask(prompts=[tokens])["outputs"][0]
    assert [answer["output"] for answer in answers] == [expected, expected]
    assert answers[1]["cached"] == 496
    with Client(roomy.address) as operator:
        assert operator.match_prefix(tokens).matched_tokens == 496
