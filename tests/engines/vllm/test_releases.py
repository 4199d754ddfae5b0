"""The schedulers of other vLLM releases with Pando. Their Python files run with the
binaries of the installed release."""

import subprocess
import sys
from pathlib import Path

import pytest
import vllm
from engines.environments.releases import (
    environment_of,
    release,
    releases,
    run_quick_tests,
)
from pando_kv._seams import SEAMS

SEAMS_HERE = [seam for seam in SEAMS.values() if seam.engine == "vLLM"]


def test_each_release_that_is_said_to_be_tested_is_tested():
    said = {version for seam in SEAMS_HERE for version in seam.versions}
    assert {vllm.__version__, *releases("vllm")} == said


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", releases("vllm"))
def test_another_release_schedules_over_pando(version, tmp_path_factory):
    try:
        folder = release("vllm", version, Path(vllm.__file__).parent)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"vLLM {version} cannot be had: {error}")
    environment = environment_of(folder)
    asked = [sys.executable, "-c", "import vllm; print(vllm.__version__)"]
    said = subprocess.check_output(asked, env=environment, text=True)
    assert said.split()[-1] == version
    run_quick_tests(
        "vllm", environment, tmp_path_factory.mktemp("r")
    ).check_returncode()
