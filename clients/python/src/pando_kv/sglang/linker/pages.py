"""The addresses of a page's bytes, on the device and in its block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Fragments:
    """The pieces of a copy. The three arrays are equally long: addresses on the device,
    addresses in blocks, and sizes in bytes."""

    device: Addresses
    block: Addresses
    sizes: Addresses


class PoolPages:
    """The pages of one device pool, SGLang's DevicePoolEntry, and their layout in a
    block. A block has the page's parts of all buffers, one after the other, in SGLang's
    order.

    Immutable; any thread may use it.
    """

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self.page_tokens: int = entry.page_size
        buffers = [meta for component in entry.buffer_meta for meta in component]
        self._bases, self._strides, self._sizes = np.array(buffers, np.uint64).T.copy()
        ends = np.cumsum(self._sizes, dtype=np.uint64)
        self._offsets = ends - self._sizes
        self.block_bytes = int(ends[-1])
        self._everything = np.arange(len(buffers))
        self._of_layer = self._buffers_of_layers()

    def layout(self) -> list[Any]:
        """Returns all that determines the meaning of a block's bytes, except the
        model."""
        return [
            [str(tensor.dtype), list(tensor.shape[1:]), int(size)]
            for tensor, size in zip(self.entry.kv_buffer, self._sizes, strict=True)
        ] + [sorted(self.entry.layer_mapping.items()), self.entry.page_size]

    def rows(self, indices: Any) -> Addresses:
        """Returns the first row of each page. `indices` are the indices of the pages'
        tokens, on the device. Waits for the device."""
        return np.array(self.entry.prepare_locations(indices), np.uint64)

    def fragments(
        self, rows: Addresses, blocks: Addresses, layer: int | None = None
    ) -> Fragments | None:
        """Returns the fragments of the pages at `rows`, whose blocks begin at the
        addresses in `blocks`: all fragments, or those of one layer. Returns None if the
        pool has none of that layer."""
        chosen = self._everything if layer is None else self._of_layer.get(layer)
        if chosen is None:
            return None
        pages = len(rows)
        return Fragments(
            (rows[:, None] * self._strides[chosen] + self._bases[chosen]).reshape(-1),
            (blocks[:, None] + self._offsets[chosen]).reshape(-1),
            np.tile(self._sizes[chosen], pages),
        )

    def _buffers_of_layers(self) -> dict[int, npt.NDArray[np.int64]]:
        """Returns, for each layer, the buffers of all components that the layer
        reads."""
        starts = np.cumsum([0] + [len(each) for each in self.entry.buffer_meta[:-1]])
        return {
            layer: np.add.outer(starts, np.atleast_1d(mapped)).reshape(-1)
            for layer, mapped in self.entry.layer_mapping.items()
        }
