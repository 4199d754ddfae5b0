"""SGLang's other releases over Pando: their Python files, run with the binaries of the
one that is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sglang
from engines.environments.releases import release, releases
from pando_kv.sglang import TESTED_VERSIONS

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
PARTS = ["test_seams.py", "test_publisher.py", "test_two_engines.py"]


def test_each_release_that_is_said_to_be_tested_is_tested():
    assert {sglang.__version__, *releases("sglang")} == set(TESTED_VERSIONS)


@pytest.mark.parametrize("version", releases("sglang"))
def test_another_release_serves_over_pando(version, tmp_path_factory):
    try:
        folder = release("sglang", version, Path(sglang.__file__).parent)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"SGLang {version} cannot be had: {error}")
    paths = [str(folder), os.environ["PYTHONPATH"]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    asked = [sys.executable, "-c", "import sglang; print(sglang.__version__)"]
    said = subprocess.check_output(asked, env=environment, text=True)
    assert said.split()[-1] == version
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["-c", TESTS / "pytest.ini", "--rootdir", TESTS]
        # The paths of sockets must be short.
        + ["--basetemp", tmp_path_factory.mktemp("r")]
        + [HERE / part for part in PARTS],
        env=environment,
        check=True,
    )
