"""Connecting as another user, which only root can."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# A user who is neither root nor anybody in particular.
STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be others")


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """The connections that this process makes meanwhile are that user's."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="pando_") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
