"""Times stores to and loads from a tier in Redis. The floor is a plain loop that moves
the same values to and from the same server, over as many connections."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from pando_kv import Client
from rows import Row
from started_pandod import started_pandod
from tier_copies import (
    PAGE_BYTES,
    POOL,
    POOL_PAGES,
    PROMPT_PAGES,
    load,
    prompt,
    rate,
    store,
)

ROUNDS = 9
# The number of connections, and of pandod's threads that store or load.
CONNECTIONS = 4
# The number of commands that are sent before their replies are read.
PIPELINED = 8
VALUE_BYTES = 64 + PAGE_BYTES  # a page with its header


def redis_rows(build: Path) -> list[Row]:
    """Returns the rows of the Redis tier. Each round measures its own floor, because
    other work on the machine changes the speed of the server."""
    work = {"store": [], "load": [], "set": [], "get": []}
    with _started_redis() as path:
        plain = _PlainLoop(path)
        with _serving(build, path) as (client, stored):
            for number in range(ROUNDS):
                work["set"].append(rate(plain.set))
                work["get"].append(rate(plain.get))
                plain.clear()
                work["store"].append(store(client, stored, prompt(number)))
                client.evict(POOL_PAGES)
                work["load"].append(load(client, prompt(number)))
    rates = {name: median(values) for name, values in work.items()}
    pages = f"{PROMPT_PAGES} pages of 1 MiB"
    return [
        _row(f"Redis: store {pages}", rates["store"], "SET", rates["set"]),
        _row(f"Redis: load {pages}", rates["load"], "GET", rates["get"]),
    ]


def _row(name: str, reached: float, command: str, floor: float) -> Row:
    return Row(
        f"{name}; floor: plain {command}, {CONNECTIONS} connections",
        reached,
        "MiB/s",
        floor,
        ratio_limit=0.8,
        is_minimum=True,
    )


@contextlib.contextmanager
def _started_redis() -> Iterator[Path]:
    """Yields the socket of a Redis server that keeps nothing on disk."""
    # Debian's redis-check-rdb is the same program under another name.
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        path = Path(folder) / "redis.sock"
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--save", "", "--unixsocket", path],
            executable=program,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            while not path.exists():
                time.sleep(0.01)
            yield path
        finally:
            server.kill()
            server.wait()


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(word), word) for word in words
    )


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


class _PlainLoop:
    """A client that sets and gets values of one length, and does not look at them."""

    def __init__(self, path: Path) -> None:
        self._connections = [_connect(path) for _ in range(CONNECTIONS)]
        page = os.urandom(4096) * (PAGE_BYTES // 4096)
        self._value = bytes(VALUE_BYTES - PAGE_BYTES) + page + b"\r\n"

    def set(self) -> None:
        self._each(self._set)

    def get(self) -> None:
        self._each(self._get)

    def clear(self) -> None:
        self._connections[0].sendall(_command(b"FLUSHALL"))
        self._connections[0].recv(100)

    def _each(self, work: Callable[[socket.socket, list[bytes]], None]) -> None:
        def run(number: int) -> None:
            keys = [b"%d" % i for i in range(number, PROMPT_PAGES, CONNECTIONS)]
            for first in range(0, len(keys), PIPELINED):
                work(self._connections[number], keys[first : first + PIPELINED])

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(run, range(CONNECTIONS)))

    def _set(self, connection: socket.socket, keys: list[bytes]) -> None:
        for key in keys:
            head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n" % (len(key), key)
            connection.sendall(head + b"$%d\r\n" % VALUE_BYTES)
            connection.sendall(self._value)
        _read(connection, bytearray(len(b"+OK\r\n") * len(keys)))

    def _get(self, connection: socket.socket, keys: list[bytes]) -> None:
        connection.sendall(b"".join(_command(b"GET", key) for key in keys))
        head = b"$%d\r\n" % VALUE_BYTES
        reply = bytearray(len(head) + VALUE_BYTES + 2)
        for _ in keys:
            _read(connection, reply)


def _read(connection: socket.socket, into: bytearray) -> None:
    rest = memoryview(into)
    while rest:
        rest = rest[connection.recv_into(rest) :]


@contextlib.contextmanager
def _serving(build: Path, path: Path) -> Iterator[tuple[Client, Callable[[], int]]]:
    """Yields a client of a pandod that uses the Redis server as a tier, and a function
    that returns the number of stored pages."""
    tier = ("--tier-shared", f"unix://{path}")
    with (
        started_pandod(build, *POOL, *tier) as (address, _),
        Client(address) as client,
        client.attach_pool() as memory,
        _connect(path) as counter,
    ):
        # Writes each page once, because the system allocates a page at its first write,
        # for which the timed copies must not pay.
        memory.memory()[:] = 1

        def stored() -> int:
            counter.sendall(_command(b"DBSIZE"))
            return int(counter.recv(100)[1:])

        yield client, stored
