"""Settings that mini-SGLang with Pando refuses when it starts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engines.engine_process import EngineDied, closing_all
from engines.minisgl.conftest import HEAD_SIZE, serve_pool
from engines.models import make_model

MAKE_POOL = Path(__file__).with_name("make_pool.py")


@pytest.mark.parametrize(
    ("ranks", "dtype", "model", "said"),
    [
        ("2", "float32", "tiny", "does not support --tp-size above 1"),
        ("1", "float8_e4m3fn", "tiny", "does not support KV of torch.float8_e4m3fn"),
        ("1", "float32", "", "PANDO_MODEL must be the model as --model of pandod"),
    ],
    ids=["ranks", "quantized KV", "no model"],
)
def test_what_does_not_go_together_is_refused(sources, ranks, dtype, model, said):
    done = subprocess.run(
        [sys.executable, MAKE_POOL, sources, ranks, dtype],
        env=os.environ | {"PANDO_MODEL": model},
        capture_output=True,
        text=True,
    )
    assert said in done.stdout, done.stderr


def test_a_model_that_differs_in_its_rope_alone_is_refused(start_engine, tmp_path):
    server = serve_pool(tmp_path, 512)
    (tmp_path / "twin").mkdir()
    twin = make_model(tmp_path / "twin", head_size=HEAD_SIZE, rope_theta=500_000.0)
    engine = start_engine("first", server, tmp_path)
    with closing_all([engine]):
        engine.ready()
        refused = start_engine("twin", server, tmp_path, model_path=str(twin))
        with closing_all([refused]), pytest.raises(EngineDied):
            refused.ready()
    assert "but the pool has KV of" in refused.log()
    server.close()


def test_other_sources_are_refused(sources, start_engine, tmp_path):
    changed = tmp_path / "sources"
    shutil.copytree(Path(sources, "minisgl"), changed / "minisgl")
    with (changed / "minisgl/scheduler/cache.py").open("a") as file:
        file.write("# changed\n")
    server = serve_pool(tmp_path, 512)
    engine = start_engine("changed", server, tmp_path, sources=str(changed))
    with closing_all([engine]), pytest.raises(EngineDied):
        engine.ready()
    assert "this is mini-SGLang of other sources" in engine.log()
    assert "PANDO_ANY_ENGINE_VERSION=1 tries it nevertheless" in engine.log()
    server.close()
