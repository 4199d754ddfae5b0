"""The committed protobuf code matches proto/ and stays private to the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "clients" / "python"


def test_committed_code_is_what_the_protos_generate(tmp_path):
    protoc = shutil.which(os.environ.get("PROTOC", "protoc"))
    if protoc is None:
        pytest.skip("protoc is not installed")
    version = subprocess.check_output([protoc, "--version"], text=True).strip()
    if not version.startswith("libprotoc 3.21."):
        pytest.skip(f"the generator is pinned to protoc 3.21; this is {version}")

    subprocess.run([PACKAGE / "generate_protos.sh", tmp_path], check=True)

    committed = PACKAGE / "src" / "pando_kv" / "_proto"
    assert _texts(tmp_path) == _texts(committed)


def _texts(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }


def test_the_top_level_name_pando_stays_free():
    code = "import sys, pando_kv, pando_kv.aio; assert 'pando' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
