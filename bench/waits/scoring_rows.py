"""Rows that time a short call beside lanes that score long queues of prompts, one after
the other."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from pando_kv import Client, PrefixQuery
from rows import Row
from waits.other_worker import Figures, OtherWorker

LANES = 64
PROMPTS, TOKENS = 4_096, 240


def rows_beside_scoring(other: OtherWorker, address: str) -> Iterator[Row]:
    tokens = np.arange(PROMPTS * TOKENS, dtype=np.uint32)
    queue = [PrefixQuery(prompt) for prompt in tokens.reshape(-1, TOKENS)]
    yield row("alone", other.beside(lambda: time.sleep(1)))
    for lanes in (1, LANES):
        figures = other.beside(lambda count=lanes: score(address, count, queue))
        yield row(f"beside {lanes} lanes that score", figures)


def row(where: str, figures: Figures) -> Row:
    return Row(
        f"a short call {where}, p99; floor: p50",
        figures["p99"],
        "ms",
        figures["p50"],
        limit=1,
    )


def score(address: str, lanes: int, queue: list[PrefixQuery]) -> None:
    with (
        contextlib.ExitStack() as stack,
        ThreadPoolExecutor(max_workers=lanes) as threads,
    ):
        clients = [
            stack.enter_context(Client(address, name="scores", timeout=300))
            for _ in range(lanes)
        ]
        for _ in range(2 * LANES // lanes):
            list(threads.map(lambda client: client.match_prefixes(queue), clients))
