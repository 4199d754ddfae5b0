"""pandod processes with a console, and one browser for all tests."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from console_page import ConsolePage, browser
from metrics_page import free_address
from pando_kv import Client
from pandod_process import Pandod, serving

LOAD_CLIENT = Path(__file__).parents[1] / "support" / "load_client.py"


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[ConsolePage]:
    with browser() as page:
        yield page


@pytest.fixture
def page(shared_browser: ConsolePage) -> Iterator[ConsolePage]:
    """Yields the browser's page, and fails if the page logged any error."""
    shared_browser.errors()
    yield shared_browser
    assert shared_browser.errors() == []


@pytest.fixture
def start_pandod(
    tmp_path: Path, shared_browser: ConsolePage
) -> Iterator[Callable[..., Pandod]]:
    """Returns a function that starts a pandod with the given options.

    The pandod's attribute `http` is the address of its console.
    """
    with ExitStack() as stack:

        def start(**options: object) -> Pandod:
            options = {"http": free_address()} | options
            pandod = stack.enter_context(serving(tmp_path, **options))
            pandod.http = options["http"]
            return pandod

        yield start
        shared_browser.leave()


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod]) -> Pandod:
    return start_pandod()


@pytest.fixture
def client(pandod: Pandod) -> Iterator[Client]:
    with Client(pandod.address, name="the worker") as worker:
        yield worker


@pytest.fixture
def load(start_pandod: Callable[..., Pandod]) -> Iterator[Pandod]:
    """Yields a pandod with two clients at work."""
    pandod = start_pandod(pool_pages=600)
    clients = [
        subprocess.Popen(
            [sys.executable, LOAD_CLIENT, pandod.address, str(seed), "0", "120"],
            stdout=subprocess.DEVNULL,
        )
        for seed in (1, 2)
    ]
    yield pandod
    for process in clients:
        process.kill()
        process.wait()
