"""A pandod of each test, for the connector in vLLM's scheduler, without a model."""

import pytest
from engines.vllm.conftest import serve_pool
from pando_kv import Client

PAGES = 64


@pytest.fixture
def pandod(tmp_path):
    server = serve_pool(tmp_path, PAGES)
    yield server
    server.close()


@pytest.fixture
def operator(pandod):
    """Looks at that pandod, which must be sound in the end."""
    with Client(pandod.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []
