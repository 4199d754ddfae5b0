"""Kinds, keys and contents of blocks for tests."""

import hashlib
from collections.abc import Sequence

import numpy as np
from pando_kv import BlockKeys, BlockMemory, Client, Kind, KindSpec
from pando_kv.blocks import PLACE_BYTES, are_places

MIB = 1 << 20
KEY_BYTES = 32
# A block_worker.py stores and locks STORED blocks, and reserves RESERVED ones.
STORED = 4
RESERVED = 3
# Options of a pandod with block memory (16 extents) and no pool.
BLOCKS_ONLY = {
    "memory": 16 * MIB,
    "block_extent": MIB,
    **dict.fromkeys(["pool_pages", "page_tokens", "layers", "heads"]),
    **dict.fromkeys(["head_size", "dtype"]),
}


def spec(name: str = "a", shard_bytes: int = 64 << 10, **other: object) -> KindSpec:
    identity = hashlib.sha256(name.encode()).digest()
    return KindSpec(identity, f"kind {name}", KEY_BYTES, shard_bytes, **other)


def keys(count: int, prompt: int = 0, first: int = 0) -> list[bytes]:
    """Returns `count` keys of a prompt, from the key numbered `first` on."""
    return [
        hashlib.sha256(f"{prompt}/{index}".encode()).digest()
        for index in range(first, first + count)
    ]


def of(kind: Kind, named: Sequence[bytes], **other: object) -> BlockKeys:
    return BlockKeys(kind.number, b"".join(named), **other)


def content(key: bytes, size: int) -> np.ndarray:
    """Returns the bytes of the block with this key, which differ from key to key."""
    seed = np.frombuffer(key, np.uint32)
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def bytes_at(memory: BlockMemory, place: int, size: int) -> np.ndarray:
    begin = int(place) * PLACE_BYTES
    return memory.bytes[begin : begin + size]


def store(
    client: Client,
    memory: BlockMemory,
    reservation: int,
    kind: Kind,
    named: Sequence[bytes],
) -> np.ndarray:
    """Reserves, writes and publishes the blocks that are missing.

    Returns for each key its place, or the reason why it got none.
    """
    places = client.reserve_blocks(reservation, [of(kind, named)])
    size = kind.spec.shard_bytes
    for key, place, is_ours in zip(named, places, are_places(places), strict=True):
        if is_ours:
            bytes_at(memory, place, size)[:] = content(key, size)
    client.publish_blocks(reservation)
    return places


def assert_holds(
    memory: BlockMemory, kind: Kind, named: Sequence[bytes], places: np.ndarray
) -> None:
    """Checks that each place has the bytes of its key."""
    assert are_places(places).all(), places
    size = kind.spec.shard_bytes
    for key, place in zip(named, places, strict=True):
        assert (bytes_at(memory, place, size) == content(key, size)).all()
