"""A worker as a user may write it who has only the installed package.

usage: typed_worker.py ADDRESS
"""

import asyncio
import sys

import numpy as np
import numpy.typing as npt
from pando_kv import (
    BlocksStored,
    Client,
    InvalidRequestError,
    Namespace,
    SnapshotEnd,
)
from pando_kv.aio import AsyncClient

Tokens = npt.NDArray[np.uint32]


def serve(client: Client, prompt: Tokens) -> int:
    """Computes and publishes the uncached part of the prompt.

    Returns the number of tokens that were cached.
    """
    tokens = len(prompt)
    match = client.match_prefix(
        prompt, max_tokens=tokens - 1, lock=True, reserve_tokens=tokens
    )
    with client.attach_pool(expected_layout=client.pool.layout) as pool:
        page_tokens = pool.layout.page_tokens
        pool.keys(0)[match.reserved_page_ids] = 1
        assert (pool.keys(0)[match.page_ids] == 1).all()
    rest = tokens - match.matched_tokens
    whole = rest // page_tokens
    done = client.insert(
        [],
        match.reserved_page_ids[:whole],
        lock=match.lock,
        unlock=True,
        prompt_tokens=rest,
        free_page_ids=match.reserved_page_ids[whole:],
    )
    assert done.handle is not None
    assert done.handle.tokens == tokens // page_tokens * page_tokens
    return match.matched_tokens


def cached_blocks(client: Client) -> list[bytes]:
    """Returns the hashes of the pages in the snapshot that a watcher begins with."""
    blocks: list[bytes] = []
    with client.watch_events() as events:
        for event in events:
            if isinstance(event, SnapshotEnd):
                break
            if isinstance(event, BlocksStored):
                blocks += event.block_hashes
    return blocks


def refusal(client: Client) -> str:
    try:
        client.match_prefix([1], namespace=Namespace(extra_key="x" * 1000))
    except InvalidRequestError as error:
        return error.reason
    return ""


async def matched_by_another(address: str, prompt: Tokens) -> int:
    async with AsyncClient(address, name="other") as client:
        match = await client.match_prefix(prompt)
        return match.matched_tokens


def main() -> None:
    address = sys.argv[1]
    prompt = np.arange(100, dtype=np.uint32)
    with Client(address, name="worker") as client:
        found = [serve(client, prompt), serve(client, prompt)]
        assert found == [0, 96], found
        assert len(cached_blocks(client)) == 6
        assert refusal(client) == "INVALID_FIELD"
        assert asyncio.run(matched_by_another(address, prompt)) == 96
        assert client.flush().evicted_pages == 6
        assert client.check_invariants() == []


main()
