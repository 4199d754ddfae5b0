"""Several real pandod that share a real server of Redis or Valkey."""

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
    """Starts a server with the options given; ends it after the machines."""

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
    """Those of a Redis, or of the kind of server that a test is run with."""
    return machines_of(start_server(getattr(request, "param", "redis")))
