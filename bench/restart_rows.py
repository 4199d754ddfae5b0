"""Times calls that are sent as pandod is killed, under its keeper."""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from pando_kv import Client
from rows import Row
from started_pandod import SMALLEST_LAYOUT, started_pandod

PAGES = 1_000_000
PAGE_TOKENS = 16
PROMPT_PAGES = 10
SESSIONS = 16
LOCKS = 1_000
KILLS = 10  # the keeper delays more starts than that

_random = np.random.default_rng(1)


def restart_rows(build: Path) -> list[Row]:
    """Returns the time from the kill to the answer of a call that was sent with it."""
    options = ("--pool-pages", PAGES + 1, "--page-tokens", PAGE_TOKENS)
    with started_pandod(build, *SMALLEST_LAYOUT, *options, keeper=True) as served:
        address, keeper = served
        prompts = _fill(address)
        with ExitStack() as stack:
            clients = [stack.enter_context(Client(address)) for _ in range(SESSIONS)]
            locks = [
                clients[number % SESSIONS].match_prefix(prompt, lock=True).lock
                for number, prompt in enumerate(prompts)
            ]
            pauses = [_pause(client, keeper) for client in clients[:KILLS]]
            lost = sum(client.generation - 1 for client in clients)
    nodes = PAGES // PROMPT_PAGES
    what = f"{PAGES:,} pages, {nodes:,} nodes, {len(locks):,} locks"
    return [
        Row(
            f"a kill of pandod, {what}, worst of {KILLS}", max(pauses), "ms", limit=600
        ),
        Row(f"sessions lost by them, of {SESSIONS}", lost, ""),
    ]


def _prompt(pages: int) -> np.ndarray:
    return _random.integers(0, 1 << 31, pages * PAGE_TOKENS, dtype=np.uint32)


def _fill(address: str) -> list[np.ndarray]:
    """Fills the pool, and returns as many of the cached prompts as there are locks."""
    prompts = []
    with Client(address) as client:
        for number in range(PAGES // PROMPT_PAGES):
            prompt = _prompt(PROMPT_PAGES)
            client.insert(prompt, client.allocate_pages(PROMPT_PAGES))
            if number < LOCKS:
                prompts.append(prompt)
    return prompts


def _pause(client: Client, keeper: int) -> float:
    """Kills pandod; returns the milliseconds until a call of the client is answered."""
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text()
    began = time.perf_counter()
    os.kill(int(children), signal.SIGKILL)
    client.match_prefix(_prompt(PROMPT_PAGES), lock=True).lock.release()
    pause = (time.perf_counter() - began) * 1e3
    time.sleep(0.5)  # the other clients resume their sessions meanwhile
    return pause
