"""Tests with real engines. Each runs in its engine's environment (make test-engines);
where that is not the Python of this run, the engine's tests are not collected."""

import importlib.util

import pytest

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
