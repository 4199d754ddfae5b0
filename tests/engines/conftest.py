"""Tests with real engines. Each runs in its engine's environment (make test-engines);
where that is not the Python of this run, the engine's tests are not collected."""

import importlib.util

import pytest
from pando_kv import Client

# Engines start slowly where many share the cores.
SECONDS = 1200


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(SECONDS))


# mini-SGLang runs on what SGLang needs.
ENVIRONMENTS = {"sglang": "sglang", "minisgl": "sglang", "vllm": "vllm"}
collect_ignore = [
    engine
    for engine, package in ENVIRONMENTS.items()
    if importlib.util.find_spec(package) is None
]


@pytest.fixture(scope="module")
def operator(roomy):
    """Looks at the pandod of the engines, which must be sound in the end."""
    with Client(roomy.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []
