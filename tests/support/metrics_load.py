"""Client processes whose traffic the metrics have to account for."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LOAD_CLIENT = Path(__file__).with_name("load_client.py")
CLIENTS = 4
REQUESTS = 200


@contextlib.contextmanager
def load(address: str) -> Iterator[list[subprocess.Popen]]:
    """Runs client processes that hit, miss, evict, publish twice and are refused."""
    clients = [
        subprocess.Popen(
            [sys.executable, LOAD_CLIENT, address, str(seed), str(REQUESTS), "0"],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        for seed in range(CLIENTS)
    ]
    try:
        yield clients
        assert [client.wait() for client in clients] == [0] * CLIENTS
    finally:
        for client in clients:
            client.kill()
            client.wait()
