"""The pool's memory, mapped into this process."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from pando_kv._memory_socket import fetch_shards
from pando_kv.errors import PandoError
from pando_kv.layout import PoolDescription


class MappedPool:
    """The KV pool as numpy arrays over the shared memory itself; nothing is copied.

    What is written to a page is seen by every worker at once. Write only to pages
    that the session has reserved. A mapping belongs to one boot of pandod: when
    `pool.epoch` is no longer `client.epoch`, close it and attach again.

    Any thread may call it; the memory is as racy as memory is.
    """

    def __init__(
        self, description: PoolDescription, epoch: int, shards: list[tuple[int, int]]
    ) -> None:
        """Maps the (descriptor, bytes) of each shard and closes the descriptors.

        Raises PandoError if they are not the shards of the description.
        """
        self.description = description
        self.layout = description.layout
        self.epoch = epoch
        self._maps: list[mmap.mmap] = []
        try:
            _check_sizes([size for _, size in shards], description)
            for fd, size in shards:
                self._maps.append(mmap.mmap(fd, size))
        finally:
            for fd, _ in shards:
                os.close(fd)

    @classmethod
    def attach(
        cls,
        description: PoolDescription,
        epoch: int,
        memory_socket: str,
        token: bytes,
        timeout: float,
    ) -> MappedPool:
        return cls(description, epoch, fetch_shards(memory_socket, token, timeout))

    def keys(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Keys of a layer: (pages, page_tokens, heads, head_size)."""
        return self._pages(layer, self._plane(0, of=2), shard)

    def values(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Values of a layer: (pages, page_tokens, heads, head_size)."""
        return self._pages(layer, self._plane(1, of=2), shard)

    def latent(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Latent vectors of a layer: (pages, page_tokens, heads, head_size)."""
        return self._pages(layer, self._plane(0, of=1), shard)

    def key_slots(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Keys of a layer by slot: (pages * page_tokens, heads, head_size)."""
        return self._slots(layer, self._plane(0, of=2), shard)

    def value_slots(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Values of a layer by slot: (pages * page_tokens, heads, head_size)."""
        return self._slots(layer, self._plane(1, of=2), shard)

    def latent_slots(self, layer: int, shard: int = 0) -> npt.NDArray[Any]:
        """Latent vectors by slot: (pages * page_tokens, heads, head_size)."""
        return self._slots(layer, self._plane(0, of=1), shard)

    def close(self) -> None:
        """Unmaps the memory. Raises BufferError while there are views of it."""
        while self._maps:
            try:
                self._maps[-1].close()
            except BufferError:
                raise BufferError(
                    "numpy views of the pool are still in use; delete them, then "
                    "close the pool again"
                ) from None
            self._maps.pop()

    def __enter__(self) -> MappedPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plane(self, plane: int, *, of: int) -> int:
        if self.layout.kv_planes != of:
            raise ValueError(
                f"the layout has kv_planes {self.layout.kv_planes}: use "
                + ("latent()" if of == 2 else "keys() and values()")
            )
        return plane

    def _pages(self, layer: int, plane: int, shard: int) -> npt.NDArray[Any]:
        layout = self.layout
        return self._view(
            layer,
            plane,
            shard,
            (self.description.capacity_pages, layout.page_tokens),
            (layout.page_stride, layout.token_stride),
        )

    def _slots(self, layer: int, plane: int, shard: int) -> npt.NDArray[Any]:
        layout = self.layout
        if layout.page_stride != layout.page_tokens * layout.token_stride:
            raise ValueError(
                f"slots are not evenly spaced in a {layout.order.value} layout; "
                "index by page instead"
            )
        slots = self.description.capacity_pages * layout.page_tokens
        return self._view(layer, plane, shard, (slots,), (layout.token_stride,))

    def _view(
        self,
        layer: int,
        plane: int,
        shard: int,
        rows: tuple[int, ...],
        row_strides: tuple[int, ...],
    ) -> npt.NDArray[Any]:
        layout = self.layout
        if not 0 <= layer < layout.layers:
            raise IndexError(f"layer is {layer}; the layout has {layout.layers}")
        if not self._maps:
            raise ValueError("the pool is closed")
        if not 0 <= shard < len(self._maps):
            raise IndexError(f"shard is {shard}; the pool has {len(self._maps)}")
        dtype = layout.dtype.numpy
        return np.ndarray(
            (*rows, layout.heads, layout.head_size),
            dtype,
            # Not the map itself: np.ndarray would not hold on to its buffer, and
            # close() would unmap memory that the array still shows.
            np.frombuffer(self._maps[shard], np.uint8),
            layer * layout.layer_stride + plane * layout.kv_stride,
            (*row_strides, layout.head_stride, dtype.itemsize),
        )


def _check_sizes(sizes: list[int], description: PoolDescription) -> None:
    """A smaller shard would give views that reach beyond its memory."""
    described = [shard.size_bytes for shard in description.shards]
    if sizes != described:
        raise PandoError(
            "MEMORY_SOCKET",
            f"memory socket sent shards of {sizes} bytes; the pool is described with "
            f"{described}",
        )
