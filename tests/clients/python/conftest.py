"""Fixtures for tests that call a real pandod."""

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
    """Yields a client with a session; the index must be sound when the test ends."""
    with Client(pandod.address, name="test") as client:
        yield client
        assert client.check_invariants() == []


@pytest.fixture
def cutter(pandod, tmp_path):
    """Yields a proxy to pandod that can cut the connection or drop its bytes."""
    with Cutter(tmp_path / "cutter.sock", pandod.socket) as cutter:
        yield cutter


@pytest.fixture
def http():
    return free_address()


@pytest.fixture(params=[True, False], ids=["lane", "grpc"])
def caller(request, pandod):
    """Yields a client that calls over a lane, then one that calls over gRPC."""
    with Client(pandod.address, name="caller", lane=request.param) as client:
        assert client.transport == ("lane" if request.param else "grpc")
        yield client
        assert client.check_invariants() == []
