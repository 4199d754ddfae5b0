"""Real pandod processes with the options that a test needs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pandod_process import Pandod, serving


@pytest.fixture
def start_pandod(tmp_path: Path) -> Iterator[Callable[..., Pandod]]:
    """Returns a function that starts pandods, which must stop in order at the end."""
    with ExitStack() as stack:

        def start(folder: str = "", **options: object) -> Pandod:
            (tmp_path / folder).mkdir(exist_ok=True)
            return stack.enter_context(serving(tmp_path / folder, **options))

        yield start
