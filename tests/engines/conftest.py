"""Tests with real engines. Each test runs in the environment of its engine
(`make test-engines`). The folders of engines that the running Python lacks are skipped.
"""

import importlib.util

import pytest
from pando_kv import Client

# Engines start slowly when many of them share the cores.
SECONDS = 1200


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(SECONDS))


# mini-SGLang runs in the environment of SGLang.
ENVIRONMENTS = {"sglang": "sglang", "minisgl": "sglang", "vllm": "vllm"}
collect_ignore = [
    engine
    for engine, package in ENVIRONMENTS.items()
    if importlib.util.find_spec(package) is None
]


@pytest.fixture(scope="module")
def operator(roomy):
    """Yields a client of the engines' pandod, and checks its invariants at the end."""
    with Client(roomy.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []
