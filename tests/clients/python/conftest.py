"""A real pandod for the tests that talk to one."""

import pytest
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
