"""Blocks: what engines keep in the block memory, named by kind and key.

A block is bytes that one layout of an engine stores under a key, such as the KV of a
page, a window of it, or a state. The engine makes the keys and moves the bytes; pandod
decides where they lie, and who may write, read and evict them.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pando_kv._memory_socket import close_all, fetch_memory
from pando_kv.errors import PandoError
from pando_kv.results import Namespace

PLACE_BYTES = 4096
"""A block at place p begins at byte p * PLACE_BYTES of the memory."""

MISSING = 0xFFFFFFFF
"""The block is not there."""
PENDING = 0xFFFFFFFE
"""Another session is writing the block now, or it is being loaded from a tier."""
READY = 0xFFFFFFFD
"""The block is there already, and nothing is reserved; or, of an acquire with `all`, it
is there, and nothing is locked because others are not."""
FULL = 0xFFFFFFFC
"""There is no room for the block."""
NOT_LOOKED_AT = 0xFFFFFFFB
"""The key was not looked at, because of the shape of the keys."""


def are_places(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Which of the values are places, as opposed to those above."""
    return values < NOT_LOOKED_AT


class Shape(IntEnum):
    """Which keys of a `BlockKeys` are looked at."""

    EACH = 0
    """Each by itself."""
    PREFIX = 1
    """From the first on, up to the first that is not ready."""
    WINDOW = 2
    """From the end: the last `window` contiguous keys that are all ready."""
    CHECKPOINT = 3
    """From the end: the last key that is ready."""


class BlockKeys(NamedTuple):
    """Keys of one kind, in the order of the prompt."""

    kind: int
    """`Kind.number`."""
    keys: bytes
    """The keys, one after the other; any contiguous buffer of bytes."""
    before: bytes = b""
    """The key before the first one; empty: the first one begins a prompt."""
    shape: Shape = Shape.EACH
    """For lookup and acquire."""
    window: int = 0
    """With Shape.WINDOW: how many keys."""


@dataclass(frozen=True)
class KindSpec:
    """What one layout of an engine stores under its keys."""

    identity: bytes
    """A digest of all that determines the bytes of a block: architecture, weights and
    their version, quantization, data type, block size, rank, format and version of the
    engine. From 1 to 256 bytes."""
    label: str
    """For operators, for example "vllm llama group 0"."""
    key_bytes: int
    """Of each key, from 16 to 64."""
    shard_bytes: int
    """Of a block in one shard."""
    shards: int = 1
    namespace: Namespace | None = None


@dataclass(frozen=True)
class Kind:
    """A kind that the session has open."""

    number: int
    """Names the kind in `BlockKeys`, in this boot of pandod."""
    generation: int
    shard_stride: int
    """Bytes from one shard of a block to the next."""
    spec: KindSpec


class BlockMemory:
    """The block memory, mapped into this process.

    It stays mapped while this object or a view of it lives. When a session is lost,
    pandod gives what it had locked or reserved to others only once no process has the
    memory mapped that was attached for it. A mapping belongs to one boot of pandod:
    when `epoch` differs from `client.epoch`, its places mean nothing any more, but what
    is in it can still be read.
    """

    def __init__(self, epoch: int, fd: int, size: int) -> None:
        """Takes the descriptor over."""
        self.epoch = epoch
        try:
            mapped = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        with suppress(OSError):  # a kernel without huge pages for shared memory
            mapped.madvise(mmap.MADV_HUGEPAGE)
        # Not the map itself: np.ndarray would not hold on to its buffer.
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
        """All of it: (memory_bytes,)."""

    @classmethod
    def attach(
        cls, epoch: int, size: int, memory_socket: str, token: bytes, timeout: float
    ) -> BlockMemory:
        parts = fetch_memory(memory_socket, token, timeout)
        if [bytes_ for _, bytes_ in parts] != [size]:
            close_all([fd for fd, _ in parts])
            raise PandoError(
                "MEMORY_SOCKET",
                f"memory socket sent {len(parts)} descriptors in place of the block "
                f"memory of {size} bytes",
            )
        return cls(epoch, parts[0][0], size)


def key_bytes_of(keys: Sequence[BlockKeys]) -> int:
    """Of all keys together."""
    return sum(len(each.keys) for each in keys)
