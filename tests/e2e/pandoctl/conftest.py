"""Fixtures for pandoctl, the pandod that it asks, and a worker of that pandod."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from pando_kv import Client
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, Pandod

OK, FAILED, USAGE, UNREACHABLE, UNHEALTHY = range(5)
SALT = "a secret"
# No other printed number looks like this token.
FIRST_TOKEN = 77_000_000


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod]) -> Pandod:
    return start_pandod(model="a model")


@pytest.fixture
def ctl(pandod: Pandod) -> Pandoctl:
    return Pandoctl(pandod.address)


@pytest.fixture
def client(pandod: Pandod) -> Iterator[Client]:
    with Client(pandod.address, name="the worker") as worker:
        yield worker


def prompt(pages: int, first: int = FIRST_TOKEN) -> np.ndarray:
    return np.arange(first, first + pages * PAGE_TOKENS, dtype=np.uint32)


def publish(client: Client, tokens: np.ndarray, **options: object) -> None:
    client.insert(tokens, client.allocate_pages(tokens.size // PAGE_TOKENS), **options)


def spelled(tokens: np.ndarray) -> list[str]:
    return [str(token) for token in tokens]


def rows(text: str) -> list[list[str]]:
    """Returns the cells of a table without its header; no cell here has a space."""
    return [line.split() for line in text.splitlines()[1:]]
