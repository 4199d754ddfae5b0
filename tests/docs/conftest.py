"""A pandod as docs/calls.md starts it, and its metrics."""

import pytest
from metrics_page import free_address
from pandod_process import serving


@pytest.fixture
def http():
    return free_address()


@pytest.fixture
def pandod(tmp_path, http):
    with serving(tmp_path, http=http, memory="64MiB") as server:
        yield server
