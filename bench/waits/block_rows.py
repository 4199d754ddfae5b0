"""Rows that time short calls beside the calls of engines with a million blocks."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from pando_kv import BlockKeys, Client, KindSpec
from pando_kv._proto.pando.v1 import admin_pb2
from rows import Row
from waits.long_calls import LongCalls
from waits.other_worker import OtherWorker

BLOCKS = 1_000_000
BLOCK_BYTES = 4 << 10
EXTENT = 64 << 20
MEMORY = -(-BLOCKS * BLOCK_BYTES // EXTENT) * EXTENT
OPTIONS = ("--memory", MEMORY, "--block-extent", EXTENT)
MOST_KEYS = 16_384
MOST_KINDS = 256
KEY_BYTES = 64
WHERE = f"{BLOCKS:,} blocks"
LIST_KINDS = admin_pb2.ListKindsRequest(limit=10_000)


class Blocks:
    """The block calls of one session. Each call takes new names; all keys differ."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.kind = client.open_kinds([KindSpec(b"small", "", KEY_BYTES, BLOCK_BYTES)])[
            0
        ]
        self._names = itertools.count(1)
        self._keys = itertools.count(0, MOST_KEYS)

    def keys(self, first: int, count: int = MOST_KEYS) -> list[BlockKeys]:
        keys = np.zeros((count, KEY_BYTES // 8), np.uint64)
        keys[:, 0] = np.arange(first, first + count, dtype=np.uint64)
        return [BlockKeys(self.kind.number, keys.tobytes())]

    def reserve(self, count: int = MOST_KEYS) -> int:
        name = next(self._names)
        self.client.reserve_blocks(name, self.keys(next(self._keys), count))
        return name

    def acquire(self, first: int) -> int:
        name = next(self._names)
        self.client.acquire_blocks(name, self.keys(first))
        return name

    def fill(self) -> None:
        for _ in range(BLOCKS // MOST_KEYS):
            self.client.publish_blocks(self.reserve())


def rows_of_blocks(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    with Client(calls.address, name="with blocks", lane=False, timeout=300) as client:
        blocks = Blocks(client)

        def row(what: str, deed: Callable[[], object]) -> Row:
            return other.row(f"{what}, {WHERE}", deed)

        yield other.row(f"blocks from 0 to {BLOCKS:,}", blocks.fill)
        first, keys = BLOCKS // 2, f"of {MOST_KEYS:,} keys"
        yield row(
            f"LookupBlocks {keys}", lambda: client.lookup_blocks(blocks.keys(first))
        )
        locks: list[int] = []
        yield row(f"AcquireBlocks {keys}", lambda: locks.append(blocks.acquire(first)))
        yield row(f"ReleaseBlocks {keys}", lambda: client.release_blocks(locks))
        # The first reservation takes the free blocks, so the second one must evict.
        reserved = [blocks.reserve()]
        yield row(
            f"ReserveBlocks {keys}, which evicts as many",
            lambda: reserved.append(blocks.reserve()),
        )
        yield row(f"PublishBlocks {keys}", lambda: client.publish_blocks(reserved[0]))
        large = KindSpec(b"large", "", KEY_BYTES, EXTENT)
        yield row(
            f"ReserveBlocks of one that takes the extent of {EXTENT // BLOCK_BYTES:,}",
            lambda: reserve_one(client, large),
        )
        yield row(f"DiscardBlocks {keys}", lambda: client.discard_blocks(reserved[1]))
        specs = [
            KindSpec(b"%d" % number, "", KEY_BYTES, BLOCK_BYTES)
            for number in range(MOST_KINDS - 2)
        ]
        yield row(f"OpenKinds of {len(specs)}", lambda: client.open_kinds(specs))
        yield row(
            f"FindKinds of {len(specs)}",
            lambda: client.find_kinds([(None, spec.identity) for spec in specs]),
        )
        explain = admin_pb2.ExplainBlockRequest(
            kind_number=blocks.kind.number, key=bytes(KEY_BYTES)
        )
        yield row("ListKinds", lambda: calls.call("Admin/ListKinds", LIST_KINDS))
        yield row("ExplainBlock", lambda: calls.call("Admin/ExplainBlock", explain))
        yield row("ResetKinds", lambda: client.reset_kinds([blocks.kind.number]))


def row_of_locked_blocks(other: OtherWorker, calls: LongCalls) -> Row:
    with Client(calls.address, name="one that ends", lane=False) as ending:
        blocks = Blocks(ending)
        blocks.fill()
        locked = BLOCKS // MOST_KEYS * MOST_KEYS
        for first in range(0, locked, MOST_KEYS):
            blocks.acquire(first)
        return other.row(
            f"the end of a session with {locked:,} locked blocks",
            lambda: calls.end(ending.session_id),
        )


def reserve_one(client: Client, spec: KindSpec) -> None:
    (kind,) = client.open_kinds([spec])
    client.reserve_blocks(1 << 40, [BlockKeys(kind.number, bytes(KEY_BYTES))])
