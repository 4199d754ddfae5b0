"""A pandod with a disk tier, and the steps that tests take with it."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from eventually import eventually
from metrics_page import MetricsPage, free_address
from no_io_uring import without_io_uring
from pando_kv import Client
from pandod_process import PAGE_TOKENS, Pandod
from protocol_worker import Answer, ProtocolWorker, protocol_worker
from stalled_disk import StalledDisk

PAGES = 12
PROMPT = np.arange(PAGES * PAGE_TOKENS, dtype=np.uint32)
# No test waits that long.
WAIT_MS = 60_000


class Tiered:
    """A pandod with a disk tier, and the calls of a worker to it."""

    def __init__(self, start, folder: Path, **options: object) -> None:
        self.folder = folder
        self.http = free_address()
        self.pandod: Pandod = start(
            **{
                "http": self.http,
                "model": "a-model",
                "tier_disk": folder,
                "tier_disk_bytes": "4MiB",
                "tier_min_load_tokens": PAGE_TOKENS,
                "verify_pages": 1,
            }
            | options
        )

    def client(self) -> Client:
        return Client(self.pandod.address)

    def figure(self, name: str, **labels: str) -> int:
        return int(MetricsPage(self.http).sum(f"pando_tier_{name}", **labels))

    def copied(self, direction: str) -> int:
        return self.figure("copied_pages_total", direction=direction)

    def failures(self, step: str) -> int:
        return self.figure("failures_total", step=step)

    def held_pages(self) -> int:
        return self.figure("pages")

    def cache(self, tokens: np.ndarray, seed: int, **stated: str) -> np.ndarray:
        """Computes a prompt, and returns once the tier has it.

        `stated` is what the worker says of its model. Returns the bytes of the pages.
        """
        with self.client() as client, client.attach_pool(**stated) as pool:
            before = self.held_pages()
            match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
            pages = match.reserved_page_ids
            fill(pool, client, pages, seed)
            client.insert(tokens, pages, lock=match.lock, unlock=True)
            eventually(lambda: self.held_pages() == before + pages.size)
            self.await_idle()
            return contents(pool, client, pages)

    def store(self, tokens: np.ndarray, seed: int) -> np.ndarray:
        """Computes a prompt and evicts it, so that only the tier has it."""
        computed = self.cache(tokens, seed)
        self.evict(tokens.size // PAGE_TOKENS)
        return computed

    def await_idle(self) -> None:
        """Waits until the tier holds no lock, so that every page can be evicted."""
        with protocol_worker(self.pandod.address) as observer:
            eventually(lambda: observer.stats().locks == 0)

    def evict(self, pages: int = PAGES) -> None:
        with self.client() as client:
            assert client.evict(pages) == pages

    def read(
        self, tokens: np.ndarray = PROMPT, **stated: str
    ) -> tuple[int, np.ndarray]:
        """Returns the number of matched tokens, and the bytes of their pages."""
        with self.client() as client, client.attach_pool(**stated) as pool:
            match = client.match_prefix(tokens, lock=True, pending_wait=WAIT_MS / 1000)
            with match.lock:
                return match.matched_tokens, contents(pool, client, match.page_ids)


def fill(pool, client: Client, pages: np.ndarray, seed: int) -> None:
    random = np.random.default_rng(seed)
    for layer in range(client.pool.layout.layers):
        for plane in (pool.keys(layer), pool.values(layer)):
            plane[pages] = random.random(plane[pages].shape, dtype=np.float32)


def contents(pool, client: Client, pages: np.ndarray) -> np.ndarray:
    return np.stack(
        [
            plane[pages]
            for layer in range(client.pool.layout.layers)
            for plane in (pool.keys(layer), pool.values(layer))
        ]
    )


def wait_for(worker: ProtocolWorker, tokens: np.ndarray, **fields: Any) -> Answer:
    """Starts a match that locks, and that waits until blocks on disk are loaded."""
    return worker.start(
        "MatchPrefix", tokens=tokens, lock=True, pending_wait_ms=WAIT_MS, **fields
    )


@contextmanager
def stalled_tier(start_pandod, tmp_path, has_io_uring=True, **options):
    disk = StalledDisk(tmp_path)
    environment = disk.environment
    if not has_io_uring:
        environment = without_io_uring(tmp_path, environment)
    tiered = Tiered(start_pandod, tmp_path / "tier", **options)
    tiered.pandod.stop()
    tiered.pandod.start(**environment)
    try:
        yield tiered, disk
    finally:
        disk.go_on()
