"""A client that is patient, but for calls without an answer."""

import contextlib
from collections.abc import Iterator

from pando_kv import Client
from pando_kv.aio import AsyncClient


@contextlib.contextmanager
def impatient(client: Client | AsyncClient) -> Iterator[None]:
    """Calls that begin meanwhile are not waited for; others have time, on a machine
    that is busy."""
    connection = client._connection
    before, connection.timeout = connection.timeout, 0.3
    try:
        yield
    finally:
        connection.timeout = before
