"""Connections as another user, which only root can make."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# The id of a user that is not root and owns nothing.
STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be others")


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """Makes all connections inside the block as the user `uid`."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Yields a folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="pando_") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
