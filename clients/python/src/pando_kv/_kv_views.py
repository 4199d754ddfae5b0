"""The array views of a pool's memory, independent of the array library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from pando_kv.layout import DType, PoolDescription

ArrayT = TypeVar("ArrayT")


class KvViews(ABC, Generic[ArrayT]):
    """The keys, values and latent vectors of each layer, as arrays over the pool's
    memory itself. A subclass makes the arrays."""

    def __init__(
        self, description: PoolDescription, mapped: Iterable[int] | None = None
    ) -> None:
        """Prepares views of the pool. `mapped` are the shards whose memory is mapped;
        None means all."""
        self.description = description
        self.layout = description.layout
        shards = range(len(description.shards))
        self.mapped = tuple(shards if mapped is None else mapped)

    def keys(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the keys of a layer: (pages, page_tokens, heads, head_size)."""
        return self._pages(layer, self._plane(0, of=2), shard)

    def values(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the values of a layer: (pages, page_tokens, heads, head_size)."""
        return self._pages(layer, self._plane(1, of=2), shard)

    def latent(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the latent vectors of a layer: (pages, page_tokens, heads,
        head_size)."""
        return self._pages(layer, self._plane(0, of=1), shard)

    def key_slots(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the keys of a layer by slot: (pages * page_tokens, heads,
        head_size)."""
        return self._slots(layer, self._plane(0, of=2), shard)

    def value_slots(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the values of a layer by slot: (pages * page_tokens, heads,
        head_size)."""
        return self._slots(layer, self._plane(1, of=2), shard)

    def latent_slots(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the latent vectors by slot: (pages * page_tokens, heads,
        head_size)."""
        return self._slots(layer, self._plane(0, of=1), shard)

    def opaque_pages(self, layer: int, shard: int = 0) -> ArrayT:
        """Returns the bytes of a layer's opaque pages: (pages, piece_bytes). Raises
        ValueError if the layout is not opaque."""
        layout = self.layout
        if layout.dtype is not DType.OPAQUE:
            raise ValueError(
                f"the layout has dtype {layout.dtype.value}: use keys() and values(), "
                "or latent()"
            )
        self._check_place(layer, shard)
        return self._array(
            shard,
            layer * layout.layer_stride,
            (self.description.capacity_pages, layout.piece_bytes),
            (layout.page_stride, 1),
        )

    @abstractmethod
    def memory(self, shard: int = 0) -> ArrayT:
        """Returns all bytes of a shard: (size_bytes,). The layout says where the pages
        lie."""

    @abstractmethod
    def _array(
        self, shard: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> ArrayT:
        """Returns an array of the layout's dtype in a shard. `offset` and `strides` are
        in bytes."""

    def _plane(self, plane: int, *, of: int) -> int:
        if self.layout.dtype is DType.OPAQUE:
            raise ValueError("the layout is opaque: use opaque_pages() or memory()")
        if self.layout.kv_planes != of:
            raise ValueError(
                f"the layout has kv_planes {self.layout.kv_planes}: use "
                + ("latent()" if of == 2 else "keys() and values()")
            )
        return plane

    def _pages(self, layer: int, plane: int, shard: int) -> ArrayT:
        layout = self.layout
        return self._view(
            layer,
            plane,
            shard,
            (self.description.capacity_pages, layout.page_tokens),
            (layout.page_stride, layout.token_stride),
        )

    def _slots(self, layer: int, plane: int, shard: int) -> ArrayT:
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
    ) -> ArrayT:
        layout = self.layout
        self._check_place(layer, shard)
        return self._array(
            shard,
            layer * layout.layer_stride + plane * layout.kv_stride,
            (*rows, layout.heads, layout.head_size),
            (*row_strides, layout.head_stride, layout.dtype.numpy.itemsize),
        )

    def _check_place(self, layer: int, shard: int) -> None:
        if not 0 <= layer < self.layout.layers:
            raise IndexError(f"layer is {layer}; the layout has {self.layout.layers}")
        self._check_shard(shard)

    def _check_shard(self, shard: int) -> None:
        shards = len(self.description.shards)
        if not 0 <= shard < shards:
            raise IndexError(f"shard is {shard}; the pool has {shards}")
        if shard not in self.mapped:
            raise IndexError(f"shard is {shard}; mapped are {list(self.mapped)}")
