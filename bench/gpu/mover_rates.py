"""Pages of a pool on a GPU that a pando-mover copies to a tier in pandod's memory and
back, beside one copy of as many bytes from and to pinned memory.

The benchmark is skipped if this Python has no torch, or if torch finds no GPU.

usage: python bench/gpu/mover_rates.py [--build build/release]
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from pando_kv import Client  # noqa: E402
from rows import Row, print_rows  # noqa: E402
from started_pandod import started_pandod  # noqa: E402

PAGE_TOKENS = 16
PAGE_BYTES = 2 << 20
# With 32 layers of keys and values, a page consists of 64 pieces of 32 KiB.
LAYOUT = ("--layers", 32, "--heads", 8, "--head-size", 128, "--dtype", "bfloat16")
PROMPTS = 8
PAGES = 64  # pages of a prompt
ALL_BYTES = PROMPTS * PAGES * PAGE_BYTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    build = parser.parse_args().build
    try:
        import torch
    except ImportError:
        print("skipped: this Python has no torch")
        return 0
    if not torch.cuda.is_available():
        print("skipped: torch finds no GPU")
        return 0
    options = (*LAYOUT, "--pool-memory", "cuda", "--pool-pages", PROMPTS * PAGES + 65)
    with started_pandod(build, *options, "--tier-host-bytes", 2 * ALL_BYTES) as (
        address,
        _,
    ):
        mover_socket = Path(address.removeprefix("unix:")).with_name("mover.sock")
        mover = subprocess.Popen(
            [build / "bin/pando-mover", "--socket", mover_socket, "--device", "0"]
        )
        try:
            print_rows(rows(address, torch))
        finally:
            mover.terminate()
            mover.wait()
    return 0


def rows(address: str, torch) -> list[Row]:
    pinned = torch.empty(ALL_BYTES, dtype=torch.uint8, pin_memory=True)
    on_gpu = torch.empty(ALL_BYTES, dtype=torch.uint8, device="cuda")
    with Client(address) as client:
        first, prompts = [], range(PROMPTS)
        wait_for(lambda: all(mover.is_present for mover in client.stats().movers))
        begin = time.perf_counter()
        for prompt in prompts:
            client.insert(tokens(prompt), client.allocate_pages(PAGES))
        wait_for(lambda: tier_pages(client) == PROMPTS * PAGES)
        stored = time.perf_counter() - begin
        client.evict(PROMPTS * PAGES)
        begin = time.perf_counter()
        for prompt in prompts:
            called = time.perf_counter()
            match = client.match_prefix(tokens(prompt), lock=True, pending_wait=30)
            with match.lock:
                assert len(match.page_ids) == PAGES, len(match.page_ids)
            first.append(time.perf_counter() - called)
        loaded = time.perf_counter() - begin

    def copy(to, of) -> float:
        spent = []
        for _ in range(10):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            to.copy_(of)
            torch.cuda.synchronize()
            spent.append(time.perf_counter() - begin)
        return median(spent)

    def rate(seconds: float) -> float:
        return ALL_BYTES / seconds / 2**30

    return [
        Row(
            "store to a tier in memory",
            rate(stored),
            "GiB/s",
            rate(copy(pinned, on_gpu)),
        ),
        Row(
            "load from it, one prompt at a time",
            rate(loaded),
            "GiB/s",
            rate(copy(on_gpu, pinned)),
        ),
        Row("load of one prompt of 1,024 tokens, p50", 1000 * median(first), "ms"),
    ]


def tokens(prompt: int) -> np.ndarray:
    count = PAGES * PAGE_TOKENS
    return np.arange(prompt * count, (prompt + 1) * count, dtype=np.uint32)


def tier_pages(client: Client) -> int:
    return sum(tier.held_pages for tier in client.stats().tiers)


def wait_for(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.001)


if __name__ == "__main__":
    sys.exit(main())
