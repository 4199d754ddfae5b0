"""Fixtures with a pandod for each test of the connector in vLLM's scheduler."""

import contextlib

import pytest
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_TOKENS
from metrics_page import free_address
from pando_kv import Client
from stalled_disk import StalledDisk

PAGES = 64


@pytest.fixture
def pandod(tmp_path):
    server = serve_pool(tmp_path, PAGES)
    yield server
    server.close()


@pytest.fixture
def operator(pandod):
    """Yields a client of the pandod, and checks its invariants at the end."""
    with Client(pandod.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []


@pytest.fixture
def disk(tmp_path):
    return StalledDisk(tmp_path)


@pytest.fixture
def http():
    return free_address()


@contextlib.contextmanager
def serve_tier(folder, http, disk):
    """Runs a pandod with a disk tier on `disk`."""
    server = serve_pool(
        folder,
        PAGES,
        http=http,
        tier_disk=folder / "tier",
        tier_disk_bytes="16MiB",
        tier_min_load_tokens=BLOCK_TOKENS,
    )
    server.stop()
    server.start(**disk.environment)
    yield server
    disk.go_on()
    server.close()
