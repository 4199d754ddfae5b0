"""Starts LMCache's server and Mooncake's master, from an environment that has them."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 60


@contextlib.contextmanager
def lmcache_server(python: str) -> Iterator[str]:
    """Yields the URL of the server's calls."""
    rpc, http = _free_ports()
    with _serving(
        [
            *(Path(python).with_name("lmcache"), "server"),
            *("--host", "127.0.0.1", "--port", rpc),
            *("--http-host", "127.0.0.1", "--http-port", http),
            *("--l1-size-gb", "1", "--eviction-policy", "LRU"),
        ],
        http,
    ):
        yield f"tcp://127.0.0.1:{rpc}"


@contextlib.contextmanager
def mooncake_master(python: str) -> Iterator[str]:
    rpc, metrics = _free_ports()
    where = "import mooncake; print(mooncake.__path__[0])"
    package = subprocess.check_output([python, "-c", where], text=True).strip()
    master = Path(package) / "mooncake_master"
    master.chmod(0o755)
    with _serving(
        [
            *(master, "-rpc_address", "127.0.0.1", "-rpc_port", rpc),
            *("-metrics_host", "127.0.0.1", "-metrics_port", metrics),
        ],
        rpc,
    ):
        yield f"127.0.0.1:{rpc}"


@contextlib.contextmanager
def _serving(command: list[object], port: int) -> Iterator[None]:
    """Starts the server, waits until a program listens on `port`, yields, and ends the
    server. Raises RuntimeError, with the end of the server's output, if the server ends
    or does not listen within START_SECONDS."""
    quiet = os.environ | {"LMCACHE_DISABLE_BANNER": "1", "LMCACHE_TRACK_USAGE": "false"}
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(
            list(map(str, command)), stdout=log, stderr=subprocess.STDOUT, env=quiet
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"{command[0]}: {log.read()[-500:]}")
                time.sleep(0.1)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
