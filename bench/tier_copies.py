"""Stores prompts of large pages in a tier of pandod, and loads them again."""

import time
from collections.abc import Callable

import numpy as np
from pando_kv import Client

PAGE_BYTES = 1 << 20
PAGE_TOKENS = 16
PROMPT_PAGES = 256
POOL_PAGES = 4 * PROMPT_PAGES + 1
POOL = ("--page-tokens", PAGE_TOKENS, "--page-bytes", PAGE_BYTES)
POOL += ("--pool-pages", POOL_PAGES, "--model", "m")
WAIT = 60.0
MIB = 1 << 20


def prompt(number: int) -> np.ndarray:
    first = number * PROMPT_PAGES * PAGE_TOKENS
    return np.arange(first, first + PROMPT_PAGES * PAGE_TOKENS, dtype=np.uint32)


def rate(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return PROMPT_PAGES * PAGE_BYTES / MIB / (time.perf_counter() - begin)


def store(client: Client, stored: Callable[[], int], tokens: np.ndarray) -> float:
    before = stored()
    match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)

    def store() -> None:
        client.insert(tokens, match.reserved_page_ids, lock=match.lock, unlock=True)
        deadline = time.monotonic() + WAIT
        while (pages := stored() - before) < PROMPT_PAGES:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{pages} of {PROMPT_PAGES} pages were stored")
            time.sleep(0.002)

    return rate(store)


def load(client: Client, tokens: np.ndarray) -> float:
    def load() -> None:
        match = client.match_prefix(tokens, lock=True, pending_wait=WAIT)
        with match.lock:
            if match.matched_tokens != tokens.size:
                raise RuntimeError(f"{match.matched_tokens} tokens were loaded")

    return rate(load)
