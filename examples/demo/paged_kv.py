"""Keys and values of one sequence, read and written in pages through a block table."""

import math
import mmap
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
PageIds = npt.NDArray[np.uint32]


class KvPages(Protocol):
    """Pages of KV memory: `pando_kv.MappedPool`, or a `PrivatePages`.

    Both views have the shape (pages, page_tokens, kv_heads, head_size).
    """

    def keys(self, layer: int) -> Floats: ...

    def values(self, layer: int) -> Floats: ...


class PrivatePages:
    """Pages of this process alone, for runs without Pando.

    They start as NaN: a row that is read before it is written shows up in every logit
    after it. They lie in shared memory as the pool does, which is slower to read than
    memory that the system may put into huge pages: so times differ by the cache alone.
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

    Holds page ids and no KV; every load and store goes to the pages themselves.
    """

    def __init__(self, pages: KvPages, layers: int, block_table: PageIds) -> None:
        self._keys = [pages.keys(layer) for layer in range(layers)]
        self._values = [pages.values(layer) for layer in range(layers)]
        self.block_table = block_table

    def write(self, layer: int, start: int, keys: Floats, values: Floats) -> None:
        """Stores the rows from position `start` on; they must not cross a page."""
        block, offset = divmod(start, self._keys[layer].shape[1])
        page = self.block_table[block]
        self._keys[layer][page, offset : offset + len(keys)] = keys
        self._values[layer][page, offset : offset + len(values)] = values

    def load(self, layer: int, end: int) -> tuple[Floats, Floats]:
        """All rows of the pages that hold [0, end); the rows from `end` on are zero.

        The bytes of the memory there are left from an earlier owner, and not used.
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
