"""A real pandod for the tests that talk to one."""

import pytest
from cutter import Cutter
from metrics_page import free_address
from pando_kv import Client
from pandod_process import Pandod


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path)
    server.start()
    yield server
    server.close()


@pytest.fixture
def client(pandod):
    """A session; at the end of the test, the index must still be sound."""
    with Client(pandod.address, name="test") as client:
        yield client
        assert client.check_invariants() == []


@pytest.fixture
def cutter(pandod, tmp_path):
    """A way to that pandod which can be cut, or lose what goes over it."""
    with Cutter(tmp_path / "cutter.sock", pandod.socket) as cutter:
        yield cutter


@pytest.fixture
def http():
    return free_address()


@pytest.fixture(params=[True, False], ids=["lane", "grpc"])
def caller(request, pandod):
    """A client on each transport."""
    with Client(pandod.address, name="caller", lane=request.param) as client:
        assert client.transport == ("lane" if request.param else "grpc")
        yield client
        assert client.check_invariants() == []
