"""A real pandod, and what `cmake --install` makes of the build that it is of."""

import subprocess

import pytest
from pandod_process import Pandod, binary


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Moved after it was installed, as it may be."""
    installed = tmp_path_factory.mktemp("install") / "first"
    subprocess.run(
        ["cmake", "--install", binary().parents[1], "--prefix", installed],
        check=True,
        capture_output=True,
    )
    return installed.rename(installed.with_name("moved"))


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path)
    server.start()
    yield server
    server.close_in_order()
