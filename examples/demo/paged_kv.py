"""Reads and writes the keys and values of one sequence in pages, by a block table."""

import math
import mmap
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
PageIds = npt.NDArray[np.uint32]


class KvPages(Protocol):
    """Pages of KV memory: a `pando_kv.MappedPool` or a `PrivatePages`.

    Both arrays have the shape (pages, page_tokens, kv_heads, head_size).
    """

    def keys(self, layer: int) -> Floats: ...

    def values(self, layer: int) -> Floats: ...


class PrivatePages:
    """Pages of this process alone, for runs without Pando.

    The pages start as NaN, so a row that is read before it is written shows in all
    later logits. They lie in shared memory, as the pool does, because the system may
    put other memory into huge pages, which are faster to read. Times with and without
    Pando therefore differ by the cache alone.
    """

    def __init__(
        self, layers: int, pages: int, page_tokens: int, kv_heads: int, head_size: int
    ) -> None:
        shape = (2, layers, pages, page_tokens, kv_heads, head_size)
        memory = mmap.mmap(-1, math.prod(shape) * np.dtype(np.float32).itemsize)
        self._kv = np.frombuffer(memory, dtype=np.float32).reshape(shape)
        self._kv.fill(np.nan)

    def keys(self, layer: int) -> Floats:
        return self._kv[0, layer]

    def values(self, layer: int) -> Floats:
        return self._kv[1, layer]


class PagedKv:
    """The KV of one sequence: position p lies in page `block_table[p // page_tokens]`.

    The object holds page ids but no KV; every load and store goes to the pages
    themselves.
    """

    def __init__(self, pages: KvPages, layers: int, block_table: PageIds) -> None:
        self._keys = [pages.keys(layer) for layer in range(layers)]
        self._values = [pages.values(layer) for layer in range(layers)]
        self.block_table = block_table

    def write(self, layer: int, start: int, keys: Floats, values: Floats) -> None:
        """Stores the rows from position `start` on, which must lie within one page."""
        block, offset = divmod(start, self._keys[layer].shape[1])
        page = self.block_table[block]
        self._keys[layer][page, offset : offset + len(keys)] = keys
        self._values[layer][page, offset : offset + len(values)] = values

    def load(self, layer: int, end: int) -> tuple[Floats, Floats]:
        """Returns all keys and values of the pages that hold [0, end), with zeros from
        `end` on.

        The memory after `end` holds bytes of an earlier owner, which must not be used.
        """
        page_tokens = self._keys[layer].shape[1]
        pages = self.block_table[: -(-end // page_tokens)]
        keys = self._keys[layer][pages]
        values = self._values[layer][pages]
        rows = (-1, *keys.shape[2:])
        keys, values = keys.reshape(rows), values.reshape(rows)
        keys[end:] = 0
        values[end:] = 0
        return keys, values
