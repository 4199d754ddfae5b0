"""Times the first token of documents that the demo's model computes, and of the same
documents when they lie on disk; prints the median seconds as JSON.

usage: PYTHONPATH=examples/demo first_token.py ADDRESS INDEX

INDEX is the file `index` of the disk tier.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from generation import Generation
from model import ModelConfig, Tokens, Transformer
from paged_kv import PagedKv
from pando_kv import Client, MappedPool
from workload import Request

DOCUMENTS = 5
DOCUMENT_TOKENS = 2048
HEADER_BYTES = 4096
RECORD_BYTES = 64
WAIT = 60.0


def main(address: str, index: Path) -> None:
    model = Transformer(ModelConfig())
    random = np.random.default_rng(1)
    computed, loaded = [], []
    with Client(address) as client, client.attach_pool() as pool:
        for number in range(1, DOCUMENTS + 1):
            document = random.integers(
                model.config.vocabulary, size=DOCUMENT_TOKENS, dtype=np.uint32
            )
            computed.append(first_token(client, pool, model, document))
            await_pages(index, number * DOCUMENT_TOKENS // model.config.page_tokens)
            client.evict(client.pool.capacity_pages)
            loaded.append(first_token(client, pool, model, document))
    print(json.dumps({"computed": median(computed), "loaded": median(loaded)}))


def first_token(
    client: Client, pool: MappedPool, model: Transformer, document: Tokens
) -> float:
    begin = time.perf_counter()
    match = client.match_prefix(
        document,
        max_tokens=document.size - 1,
        lock=True,
        reserve_tokens=document.size,
        pending_wait=WAIT,
    )
    pages = np.concatenate((match.page_ids, match.reserved_page_ids))
    kv = PagedKv(pool, model.config.layers, pages)
    request = Request("document", document, max_new_tokens=1)
    Generation(model, kv, request, match.matched_tokens).prefill()
    seconds = time.perf_counter() - begin
    own = document.size // model.config.page_tokens - len(match.page_ids)
    client.insert(
        [],
        match.reserved_page_ids[:own],
        lock=match.lock,
        prompt_tokens=document.size - match.matched_tokens,
        unlock=True,
        free_page_ids=match.reserved_page_ids[own:],
    )
    return seconds


def await_pages(index: Path, pages: int) -> None:
    deadline = time.monotonic() + WAIT
    while True:
        stored = np.fromfile(index, dtype=np.uint8)[HEADER_BYTES:]
        if stored.reshape(-1, RECORD_BYTES).any(axis=1).sum() >= pages:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"fewer than {pages} pages were stored")
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
