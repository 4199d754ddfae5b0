"""Fixtures for several real pandods that share a folder."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from shared_folder import Machines


@pytest.fixture
def machines(tmp_path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(stack, tmp_path)
