"""pandod dies between the token and the memory: Python clients ask again for both."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blocks import MIB
from pando_kv import Client, UnavailableError
from pando_kv.aio import AsyncClient
from pandod_process import Pandod

TOKEN_BYTES = 16
HEADER = struct.Struct("<4sIII")
UNKNOWN_TOKEN = HEADER.pack(b"PNDO", 1, 1, 0)
# The peer gets these bytes before the connection ends.
DEATHS = {"unread": None, "unanswered": b"", "cut": b"PNDO", "next": UNKNOWN_TOKEN}
# A client tries so many times.
ATTEMPTS = 6


@pytest.fixture
def pandod(start_pandod) -> Pandod:
    return start_pandod(memory=16 * MIB, block_extent=MIB)


@contextlib.contextmanager
def dying_memory_socket(
    path: Path, answer: bytes | None, connections: int = 1
) -> Iterator[None]:
    """Answers and cuts off `connections` peers in place of pandod, then steps aside."""
    away = path.with_name("away.sock")
    path.rename(away)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            for number in range(connections):
                peer, _ = listener.accept()
                with peer:
                    if number == connections - 1:
                        away.rename(path)
                    if answer is not None:
                        peer.recv(TOKEN_BYTES, socket.MSG_WAITALL)
                        peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def attach_pool(client: Any) -> Any:
    return client.attach_pool()


def attach_memory(client: Any) -> Any:
    return client.attach_memory()


def link_session(client: Any) -> Any:
    return client.link_session(client.session_id)


ATTACHES = [attach_pool, attach_memory, link_session]


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("attach", ATTACHES)
def test_it_attaches_all_the_same(
    pandod, death: str, attach: Callable[[Any], Any]
) -> None:
    with Client(pandod.address) as client:
        with dying_memory_socket(pandod.memory_socket, DEATHS[death]):
            attach(client)


@pytest.mark.parametrize("attach", ATTACHES)
def test_so_does_the_asyncio_client(pandod, attach: Callable[[Any], Any]) -> None:
    async def run() -> None:
        async with AsyncClient(pandod.address) as client:
            with dying_memory_socket(pandod.memory_socket, b""):
                await attach(client)

    asyncio.run(run())


def test_one_that_dies_each_time_is_an_error_that_says_so(pandod):
    path = pandod.memory_socket
    with Client(pandod.address) as client, dying_memory_socket(path, b"", ATTEMPTS):
        with pytest.raises(UnavailableError, match="closed the connection after 0"):
            client.attach_pool()
