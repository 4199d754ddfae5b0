"""Times loads from a tier in host memory beside plain copies of the same pages."""

import contextlib
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import numpy as np
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
# The number of pandod's threads that load.
READERS = 4
_HELD = re.compile(r'^pando_tier_pages\{tier="host"\} (\d+)', re.MULTILINE)


def host_tier_rows(build: Path) -> list[Row]:
    """Returns the row of the host tier. Each round measures its own floor, because
    other work on the machine changes the speed of its memory."""
    plain = _PlainCopies()
    copied, loaded = [], []
    with _serving(build) as (client, stored):
        for number in range(ROUNDS):
            copied.append(rate(plain.copy))
            store(client, stored, prompt(number))
            client.evict(POOL_PAGES)
            loaded.append(load(client, prompt(number)))
    return [
        Row(
            f"host tier: load {PROMPT_PAGES} pages of 1 MiB; "
            f"floor: memcpy, {READERS} at once",
            median(loaded),
            "MiB/s",
            median(copied),
        )
    ]


class _PlainCopies:
    def __init__(self) -> None:
        shape = (PROMPT_PAGES, PAGE_BYTES)
        self._source = np.ones(shape, dtype=np.uint8)
        self._target = np.ones(shape, dtype=np.uint8)

    def copy(self) -> None:
        def work(first: int) -> None:
            for page in range(first, PROMPT_PAGES, READERS):
                np.copyto(self._target[page], self._source[page])

        with ThreadPoolExecutor(READERS) as threads:
            list(threads.map(work, range(READERS)))


@contextlib.contextmanager
def _serving(build: Path) -> Iterator[tuple[Client, Callable[[], int]]]:
    """Yields a client of a pandod with a tier in host memory, and a function that
    returns the number of pages in the tier."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        http = f"127.0.0.1:{free.getsockname()[1]}"
    tier = ("--tier-host-bytes", f"{ROUNDS * PROMPT_PAGES}MiB")
    with (
        started_pandod(build, *POOL, *tier, http=http) as (address, _),
        Client(address) as client,
        client.attach_pool() as memory,
    ):
        # Writes each page once, because the system allocates a page at its first write,
        # for which the timed copies must not pay.
        memory.memory()[:] = 1

        def stored() -> int:
            with urlopen(f"http://{http}/metrics") as page:
                return int(_HELD.search(page.read().decode()).group(1))

        yield client, stored
