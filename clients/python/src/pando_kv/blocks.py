"""The types for blocks, which engines keep in the block memory under a kind and a key.

A block is the bytes that one layout of an engine stores under a key, such as the KV of
a page, a window of the KV, or a state. The engine makes the keys and moves the bytes.
pandod decides where blocks lie, and who may write, read and evict them.
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
"""The unit of places, in bytes: a block at place p begins at byte p * PLACE_BYTES of
the memory."""

MISSING = 0xFFFFFFFF
"""The result for a block that does not exist."""
PENDING = 0xFFFFFFFE
"""The result for a block that another session is writing, or that is being loaded from
a tier."""
READY = 0xFFFFFFFD
"""The result for a block that exists, but of which no place is given: a reservation
reserves nothing for it, and an acquire with `all` has locked nothing, because other
blocks are not ready."""
FULL = 0xFFFFFFFC
"""The result for a block for which there is no room."""
NOT_LOOKED_AT = 0xFFFFFFFB
"""The result for a key that was not looked at, because of the shape of the keys."""


def are_places(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Returns which of the values are places, and not one of the results above."""
    return values < NOT_LOOKED_AT


class Shape(IntEnum):
    """The rule that says which keys of a `BlockKeys` are looked at."""

    EACH = 0
    """Each key by itself."""
    PREFIX = 1
    """From the first key on, up to the first that is not ready."""
    WINDOW = 2
    """From the end: the last `window` contiguous keys that are all ready."""
    CHECKPOINT = 3
    """From the end: the last key that is ready."""


class BlockKeys(NamedTuple):
    """The keys of one kind, in the order of the prompt."""

    kind: int
    """The `Kind.number` of the keys."""
    keys: bytes
    """The concatenated keys, in any contiguous buffer of bytes."""
    before: bytes = b""
    """The key before the first one; empty if the first key begins a prompt."""
    shape: Shape = Shape.EACH
    """The shape, for lookup and acquire."""
    window: int = 0
    """The number of keys in the window, for Shape.WINDOW."""


@dataclass(frozen=True)
class KindSpec:
    """The description of a kind: the blocks that one layout of an engine stores."""

    identity: bytes
    """A digest of everything that determines the bytes of a block: architecture,
    weights and their version, quantization, data type, block size, rank, format and
    version of the engine. From 1 to 256 bytes."""
    label: str
    """A name for operators, for example "vllm llama group 0"."""
    key_bytes: int
    """The bytes of each key, from 16 to 64."""
    shard_bytes: int
    """The bytes of a block in one shard."""
    shards: int = 1
    namespace: Namespace | None = None


@dataclass(frozen=True)
class Kind:
    """A kind that the session has open. Immutable, so any thread may read it."""

    number: int
    """The number that names the kind in `BlockKeys`, until pandod restarts."""
    generation: int
    shard_stride: int
    """Bytes from one shard of a block to the next."""
    spec: KindSpec


class BlockMemory:
    """The block memory, mapped into this process. Owned by the caller that attached it;
    any thread may use it.

    The memory stays mapped while this object or a view of the memory lives. After a
    session is lost, pandod reuses the blocks that the session had locked or reserved
    only when no process maps the memory that was attached for that session. A mapping
    belongs to one epoch: if `epoch` differs from `client.epoch`, places of the new
    epoch mean nothing in this mapping, but its bytes can still be read.
    """

    def __init__(self, epoch: int, fd: int, size: int) -> None:
        """Maps the memory, and takes over the descriptor."""
        self.epoch = epoch
        try:
            mapped = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        with suppress(OSError):  # the kernel has no huge pages for shared memory
            mapped.madvise(mmap.MADV_HUGEPAGE)
        # np.ndarray would not hold the map's buffer; np.frombuffer holds it.
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
        """All bytes of the memory: (memory_bytes,)."""

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
    """Returns the bytes of all keys together."""
    return sum(len(each.keys) for each in keys)
