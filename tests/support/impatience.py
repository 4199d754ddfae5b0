"""A client that gives up soon on calls without an answer, and is patient otherwise."""

import contextlib
from collections.abc import Iterator

from pando_kv import Client
from pando_kv.aio import AsyncClient


@contextlib.contextmanager
def impatient(client: Client | AsyncClient) -> Iterator[None]:
    """Shortens the timeout of calls that begin inside the block to 0.3 seconds.

    Calls before and after the block keep the time that they need on a busy machine.
    """
    connection = client._connection
    before, connection.timeout = connection.timeout, 0.3
    try:
        yield
    finally:
        connection.timeout = before
