"""A real pandod, and the installed files of its build."""

import pytest
from installed import install_into
from pandod_process import Pandod


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Installs the build, and moves it afterwards, which must do no harm."""
    installed = install_into(tmp_path_factory.mktemp("install") / "first")
    return installed.rename(installed.with_name("moved"))


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path)
    server.start()
    yield server
    server.close_in_order()
