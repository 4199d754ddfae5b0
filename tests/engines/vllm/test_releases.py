"""The schedulers of vLLM's other releases over Pando: their Python files, run with the
binaries of the one that is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import vllm
from engines.environments.releases import release, releases
from pando_kv.vllm import TESTED_VERSIONS

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
PARTS = ["test_signatures.py", "schedulers/test_scheduler_alone.py"]


def test_each_release_that_is_said_to_be_tested_is_tested():
    assert {vllm.__version__, *releases("vllm")} == set(TESTED_VERSIONS)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", releases("vllm"))
def test_another_release_schedules_over_pando(version, tmp_path_factory):
    try:
        folder = release("vllm", version, Path(vllm.__file__).parent)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"vLLM {version} cannot be had: {error}")
    paths = [str(folder), os.environ["PYTHONPATH"]]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        # It is told by the installed package else.
        "VLLM_TARGET_DEVICE": "cpu",
    }
    asked = [sys.executable, "-c", "import vllm; print(vllm.__version__)"]
    said = subprocess.check_output(asked, env=environment, text=True)
    assert said.split()[-1] == version
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["-c", TESTS / "pytest.ini", "--rootdir", TESTS, "--timeout=600"]
        # The paths of sockets must be short.
        + ["--basetemp", tmp_path_factory.mktemp("r")]
        + [HERE / part for part in PARTS],
        env=environment,
        check=True,
    )
