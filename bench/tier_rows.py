"""Rows of the tiers: the disk tier beside plain O_DIRECT calls on the same disk at the
same depth, the tiers in memory and in Redis, what a tier costs other calls, and what a
tier gains for the requests of a trace."""

import contextlib
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from host_tier_rows import host_tier_rows
from pando_kv import Client
from redis_rows import redis_rows
from replays import MILLION, Trace
from rows import Row, json_of
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
# The number of blocks that pandod moves at once, in each direction.
DEPTH = 8
# The sizes of the header, and of a block's record, in the file `index` of a disk tier.
HEADER_BYTES = 4096
RECORD_BYTES = 64


# The folder of the demo, and the pool that its model needs.
DEMO = Path(__file__).resolve().parent.parent / "examples/demo"
DEMO_POOL = ("--model", "pando-demo", "--pool-pages", 1024, "--page-tokens", 16)
DEMO_POOL += ("--layers", 4, "--heads", 2, "--head-size", 32, "--dtype", "float32")
PROGRAMS = Path(__file__).resolve().parent / "python"
POOL_TOKENS = 2 * MILLION
TIER_TOKENS = 20 * MILLION


def tier_rows(build: Path, traces: list[Trace]) -> list[Row]:
    chats = next(trace for trace in traces if trace.name == "conversation")
    return [
        *_copying_rows(build),
        *host_tier_rows(build),
        *redis_rows(build),
        *_calls_rows(build),
        *_first_token_rows(build),
        *_hit_rate_rows(build, chats),
    ]


def _first_token_rows(build: Path) -> list[Row]:
    """Compares the first token of a document on disk with one that the demo's model
    computes. The model computes some thousand tokens a second on a CPU; engines on GPUs
    compute more."""
    with tempfile.TemporaryDirectory(prefix="tier-", dir=build) as folder:
        tier = ("--tier-disk", folder, "--tier-disk-bytes", "64MiB")
        with started_pandod(build, *DEMO_POOL, *tier) as (address, _):
            seconds = json_of(
                *("env", f"PYTHONPATH={DEMO}", "OPENBLAS_NUM_THREADS=1"),
                *(sys.executable, PROGRAMS / "first_token.py"),
                *(address, f"{folder}/index"),
            )
    return [
        Row(
            "demo: first token of 2,048 tokens on disk; floor: computed",
            1000 * seconds["loaded"],
            "ms",
            1000 * seconds["computed"],
            ratio_limit=1,
        )
    ]


def _calls_rows(build: Path) -> list[Row]:
    """Measures what a busy tier costs calls that do not wait for it. The second floor
    shows the part that any program costs that writes and reads as many bytes."""
    with tempfile.TemporaryDirectory(prefix="tier-", dir=build) as folder:
        report = json_of(
            build / "bin/tier_calls_bench",
            *("--pandod", build / "bin/pandod", "--folder", folder),
        )
    on, off, plain = (
        quantiles(report[f"{name}_p99_us"], n=4)[0] for name in ("on", "off", "plain")
    )
    return [
        Row(
            "calls of 4 clients, p99, beside a busy tier; floor: without a tier",
            on,
            "us",
            off,
            ratio_limit=1.1,
        ),
        Row("the same; floor: without, as many bytes by O_DIRECT", on, "us", plain),
        Row("pages of 64 KiB stored in a second of them", report["stored_per_s"], ""),
        Row("pages of 64 KiB loaded in a second of them", report["loaded_per_s"], ""),
    ]


def _hit_rate_rows(build: Path, trace: Trace) -> list[Row]:
    """Measures the hit rates with a tier that stores no bytes: its loads and stores
    take no time."""
    sizes = ("--pool-tokens", str(POOL_TOKENS), "--tier-tokens", str(TIER_TOKENS))
    rates = json_of(build / "bin/tier_hit_rate", trace.path, *sizes)
    both = f"{trace.name}, pool {POOL_TOKENS:,} tokens, disk {TIER_TOKENS:,}"
    return [
        Row(f"{both}: hit rate", 100 * rates["tiered"], "%"),
        Row(f"{both}: above the pool alone", _points(rates, "tiered", "pool"), "pt"),
        Row(
            f"{both}: below a pool of {POOL_TOKENS + TIER_TOKENS:,}",
            _points(rates, "pool_large_as_both", "tiered"),
            "pt",
            limit=0.3,
        ),
    ]


def _points(rates: dict[str, float], larger: str, smaller: str) -> float:
    return 100 * (rates[larger] - rates[smaller])


def _copying_rows(build: Path) -> list[Row]:
    """Compares stores and loads with plain writes and reads. Each round measures its
    own floor, because other work on the machine changes the speed of the disk."""
    work = {"store": [], "load": [], "write": [], "read": []}
    with tempfile.TemporaryDirectory(prefix="tier-", dir=build) as folder:
        disk = _PlainDisk(Path(folder) / "plain")
        with _serving(build, Path(folder)) as (client, stored):
            for number in range(ROUNDS):
                tokens = prompt(number)
                work["write"].append(disk.write())
                work["store"].append(store(client, stored, tokens))
                client.evict(POOL_PAGES)
                work["read"].append(disk.read())
                work["load"].append(load(client, tokens))
    rates = {name: median(values) for name, values in work.items()}
    pages = f"{PROMPT_PAGES} pages of 1 MiB"
    return [
        _row(f"disk tier: store {pages}", rates["store"], rates["write"]),
        _row(f"disk tier: load {pages}", rates["load"], rates["read"]),
    ]


def _row(name: str, rate: float, floor: float) -> Row:
    return Row(
        f"{name}; floor: O_DIRECT, {DEPTH} at once",
        rate,
        "MiB/s",
        floor,
        ratio_limit=0.8,
        is_minimum=True,
    )


class _PlainDisk:
    """A file whose blocks are written and read in the way in which the tier does it."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_DIRECT
        self._file = os.open(path, flags, 0o600)
        os.ftruncate(self._file, PROMPT_PAGES * PAGE_BYTES)
        _fill(path)

    def write(self) -> float:
        return rate(lambda: self._each(os.pwrite))

    def read(self) -> float:
        def read(file: int, block: mmap.mmap, offset: int) -> None:
            os.preadv(file, [block], offset)

        return rate(lambda: self._each(read))

    def _each(self, call: Callable) -> None:
        def work(first: int) -> None:
            with mmap.mmap(-1, PAGE_BYTES) as block:
                block[:] = os.urandom(4096) * (PAGE_BYTES // 4096)
                for page in range(first, PROMPT_PAGES, DEPTH):
                    call(self._file, block, page * PAGE_BYTES)

        with ThreadPoolExecutor(DEPTH) as threads:
            list(threads.map(work, range(DEPTH)))


def _fill(path: Path) -> None:
    """Writes all bytes of a file, because a file system takes longer over the first
    write to a block than over later ones."""
    with path.open("r+b") as file:
        for _ in range(0, path.stat().st_size, PAGE_BYTES):
            file.write(os.urandom(4096) * (PAGE_BYTES // 4096))
        os.fsync(file.fileno())
        # The file leaves the system's cache, from which O_DIRECT calls would otherwise
        # remove it page by page.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def _serving(build: Path, folder: Path) -> Iterator[tuple[Client, Callable[[], int]]]:
    """Yields a client of a pandod with a disk tier, and a function that returns the
    number of blocks in the tier."""
    tier = ("--tier-disk", folder / "tier")
    tier += ("--tier-disk-bytes", f"{2 * ROUNDS * PROMPT_PAGES}MiB")
    with (
        started_pandod(build, *POOL, *tier) as (address, _),
        Client(address) as client,
        client.attach_pool() as memory,
    ):
        # Writes each page once, because the system allocates a page at its first write,
        # for which the timed copies must not pay.
        memory.memory()[:] = 1
        for segment in (folder / "tier").glob("segment-*"):
            _fill(segment)
        index = np.memmap(folder / "tier/index", dtype=np.uint8, mode="r")
        records = index[HEADER_BYTES:].reshape(-1, RECORD_BYTES)
        yield client, lambda: int(records.any(axis=1).sum())
