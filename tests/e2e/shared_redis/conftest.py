"""Fixtures for several real pandods that share a real Redis or Valkey server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from redis_server import RedisServer
from shared_redis import Machines


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def start_server(stack, tmp_path) -> Callable[..., RedisServer]:
    """Returns a function that starts a server; the server ends after the machines."""

    def start(kind: str = "redis", **options: object) -> RedisServer:
        server = RedisServer(tmp_path / "server", kind, **options)
        stack.callback(server.kill)
        return server

    return start


@pytest.fixture
def machines_of(stack, tmp_path) -> Callable[[RedisServer], Machines]:
    return lambda server: Machines(stack, tmp_path, server, server.url)


@pytest.fixture
def machines(request, start_server, machines_of) -> Machines:
    """Returns machines that share a Redis, or the kind of server a test asks for."""
    return machines_of(start_server(getattr(request, "param", "redis")))
