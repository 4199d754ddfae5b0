"""A real pandod, and what is installed of the build that it is of."""

import pytest
from installed import install_into
from pandod_process import Pandod


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Moved after it was installed, as it may be."""
    installed = install_into(tmp_path_factory.mktemp("install") / "first")
    return installed.rename(installed.with_name("moved"))


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path)
    server.start()
    yield server
    server.close_in_order()
