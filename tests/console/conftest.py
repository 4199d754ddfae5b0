"""pandod processes with a console, and one browser for all tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from console_page import ConsolePage, browser
from metrics_page import free_address
from pandod_process import Pandod, serving


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[ConsolePage]:
    with browser() as page:
        yield page


@pytest.fixture
def page(shared_browser: ConsolePage) -> Iterator[ConsolePage]:
    """At the end the page must not have complained about anything."""
    shared_browser.errors()
    yield shared_browser
    assert shared_browser.errors() == []


@pytest.fixture
def start_pandod(
    tmp_path: Path, shared_browser: ConsolePage
) -> Iterator[Callable[..., Pandod]]:
    """Starts one with the options given, and HTTP at its attribute `http`."""
    with ExitStack() as stack:

        def start(**options: object) -> Pandod:
            http = free_address()
            pandod = stack.enter_context(serving(tmp_path, http=http, **options))
            pandod.http = http
            return pandod

        yield start
        shared_browser.leave()


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod]) -> Pandod:
    return start_pandod()
