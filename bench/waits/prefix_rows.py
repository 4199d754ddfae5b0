"""Rows that time short calls beside the calls of engines that compute in the pool."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from google.protobuf.message import Message
from pando_kv import Client
from pando_kv._proto.pando.v1 import admin_pb2, data_path_pb2, pool_pb2
from pando_kv._proto.pando.v1.prefix_cache_pb2 import (
    EvictRequest,
    MatchPrefixesRequest,
    MatchPrefixRequest,
    PrefixQuery,
    UnlockRequest,
)
from rows import Row
from waits.long_calls import DEPTH, MANY_LEAVES, MOST_OF_BATCH, MOST_TOKENS, LongCalls
from waits.other_worker import OtherWorker

ENDED_LOCKS = 1_000
MOST_QUERIES = 4_096


def rows_at_depth(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    where = f"at depth {DEPTH:,}"
    locks: list[int] = []

    def unlock(some: list[int]) -> Callable[[], object]:
        request = UnlockRequest(session_id=calls.session, lock_ids=some)
        return partial(calls.call, "PrefixCache/Unlock", request)

    def end_session() -> None:
        with Client(calls.address, name="one that ends", lane=False) as ending:
            for _ in range(ENDED_LOCKS):
                ending.lock(np.arange(DEPTH))
            calls.end(ending.session_id)

    yield other.row(
        f"{DEPTH:,} locks, {where}", lambda: locks.extend(calls.lock_path())
    )
    match = data_path_pb2.BatchedRequest(
        match_prefix=MatchPrefixRequest(tokens=range(4_000))
    )
    yield other.row(
        f"a Batch of {MOST_OF_BATCH} matches, {where}",
        lambda: calls.batch([match] * MOST_OF_BATCH),
    )
    yield other.row(f"an Unlock of the deepest, {where}", unlock(locks[-1:]))
    yield other.row(f"an Unlock of {DEPTH - 1:,}, {where}", unlock(locks[:-1]))
    yield other.row(
        f"{ENDED_LOCKS:,} locks and the end of their session, {where}", end_session
    )


def row_while_it_fills(other: OtherWorker, calls: LongCalls) -> Row:
    return other.row(f"inserts from 0 to {MANY_LEAVES}", calls.fill)


def rows_at_many_leaves(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    """Yields rows for a cache with many leaves, which is empty afterwards."""
    prompt = range(MOST_TOKENS)
    pages: list[int] = []

    def row(what: str, method: str, request: Message) -> Row:
        return other.row(what, lambda: calls.call(method, request))

    def evict(pages: int) -> Row:
        what = f"Evict of {pages:,}, {MANY_LEAVES}"
        return row(what, "PrefixCache/Evict", EvictRequest(pages=pages))

    yield evict(1)
    yield evict(100_000)
    yield other.row(
        f"AllocatePages of all pages, {MANY_LEAVES}",
        lambda: pages.extend(calls.allocate(MOST_TOKENS)),
    )
    yield other.row(
        f"Insert of {MOST_TOKENS:,} tokens", lambda: calls.insert(prompt, pages)
    )
    match = MatchPrefixRequest(tokens=prompt)
    yield row(
        f"MatchPrefix of {MOST_TOKENS:,} tokens", "PrefixCache/MatchPrefix", match
    )
    query = PrefixQuery(tokens=range(MOST_TOKENS // MOST_QUERIES))
    yield row(
        f"MatchPrefixes of {MOST_QUERIES:,} prompts, {MOST_TOKENS:,} tokens",
        "PrefixCache/MatchPrefixes",
        MatchPrefixesRequest(queries=[query] * MOST_QUERIES),
    )
    yield row(
        f"Flush of a path of {MOST_TOKENS:,} pages",
        "Admin/Flush",
        admin_pb2.FlushRequest(),
    )
    free = pool_pb2.FreePagesRequest(
        session_id=calls.session, page_ids=calls.allocate(MOST_TOKENS)
    )
    yield row(f"FreePages of {MOST_TOKENS:,}", "PagePool/FreePages", free)
