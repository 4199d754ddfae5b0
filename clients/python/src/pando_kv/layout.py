"""The description of the pool by pandod, and the layout of its memory."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pando_kv._proto.pando.v1 import types_pb2
from pando_kv.errors import PandoError

EnumT = TypeVar("EnumT", bound=enum.Enum)


class DType(enum.Enum):
    """The element type of the KV memory.

    numpy has no bfloat16 and no float8, so numpy views show their raw bits as uint16
    and uint8. `MappedPool.torch()` shows them with their own types.
    """

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3 = "float8_e4m3"
    FLOAT8_E5M2 = "float8_e5m2"
    OPAQUE = "opaque"
    """Bytes whose meaning only the workers know."""

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return _NUMPY_TYPES[self]


_NUMPY_TYPES: dict[DType, np.dtype[np.generic]] = {
    DType.FLOAT32: np.dtype(np.float32),
    DType.FLOAT16: np.dtype(np.float16),
    DType.BFLOAT16: np.dtype(np.uint16),
    DType.FLOAT8_E4M3: np.dtype(np.uint8),
    DType.FLOAT8_E5M2: np.dtype(np.uint8),
    DType.OPAQUE: np.dtype(np.uint8),
}


class LayoutOrder(enum.Enum):
    """The order of the pool's memory, outermost dimension first."""

    LAYER_FIRST = "layer_first"
    """[layer][kv][page][token][head], which attention kernels read."""
    PAGE_FIRST = "page_first"
    """[page][layer][kv][token][head]: a page is one contiguous block."""


_DTYPES: dict[int, DType] = {
    types_pb2.DTYPE_FLOAT32: DType.FLOAT32,
    types_pb2.DTYPE_FLOAT16: DType.FLOAT16,
    types_pb2.DTYPE_BFLOAT16: DType.BFLOAT16,
    types_pb2.DTYPE_FLOAT8_E4M3: DType.FLOAT8_E4M3,
    types_pb2.DTYPE_FLOAT8_E5M2: DType.FLOAT8_E5M2,
    types_pb2.DTYPE_OPAQUE: DType.OPAQUE,
}

_ORDERS: dict[int, LayoutOrder] = {
    types_pb2.LAYOUT_ORDER_LAYER_FIRST: LayoutOrder.LAYER_FIRST,
    types_pb2.LAYOUT_ORDER_PAGE_FIRST: LayoutOrder.PAGE_FIRST,
}


@dataclass(frozen=True)
class KvLayout:
    """The position of each element's bytes in a shard. Strides are in bytes. Immutable,
    so any thread may read it.

    An opaque layout describes only where whole pages lie: kv_planes is 1, and the
    fields about heads and tokens are 0.
    """

    layers: int
    kv_planes: int
    """2 for separate keys and values, 1 for one latent vector (MLA)."""
    heads: int
    """The number of KV heads in one shard."""
    head_size: int
    dtype: DType
    page_tokens: int
    order: LayoutOrder
    layer_stride: int
    page_stride: int
    kv_stride: int
    token_stride: int
    head_stride: int
    piece_bytes: int
    """The bytes of a page in one layer and plane, which are contiguous."""
    page_format: str = ""
    """A text on which workers must also agree, such as the format inside an opaque
    page."""

    @classmethod
    def make(
        cls,
        *,
        capacity_pages: int,
        layers: int,
        heads: int,
        head_size: int,
        dtype: DType | str,
        page_tokens: int,
        kv_planes: int = 2,
        order: LayoutOrder | str = LayoutOrder.LAYER_FIRST,
        page_format: str = "",
    ) -> KvLayout:
        """Makes the layout that pandod gives a pool of `capacity_pages` pages.

        `dtype` and `order` may also be given by the names that pandod's options use.
        """
        dtype = DType(dtype)
        head_stride = head_size * dtype.numpy.itemsize
        token_stride = heads * head_stride
        piece_bytes = page_tokens * token_stride
        return cls(
            layers=layers,
            kv_planes=kv_planes,
            heads=heads,
            head_size=head_size,
            dtype=dtype,
            page_tokens=page_tokens,
            token_stride=token_stride,
            head_stride=head_stride,
            piece_bytes=piece_bytes,
            page_format=page_format,
            **_strides(capacity_pages, layers, kv_planes, piece_bytes, order),
        )

    @classmethod
    def opaque(
        cls,
        *,
        capacity_pages: int,
        layers: int,
        page_bytes: int,
        page_tokens: int,
        order: LayoutOrder | str = LayoutOrder.LAYER_FIRST,
        page_format: str = "",
    ) -> KvLayout:
        """Makes the layout of a pool of opaque pages. `page_bytes` are the bytes of one
        page over all layers; only the workers know what the pages contain."""
        piece_bytes = page_bytes // layers
        return cls(
            layers=layers,
            kv_planes=1,
            heads=0,
            head_size=0,
            dtype=DType.OPAQUE,
            page_tokens=page_tokens,
            token_stride=0,
            head_stride=0,
            piece_bytes=piece_bytes,
            page_format=page_format,
            **_strides(capacity_pages, layers, 1, piece_bytes, order),
        )

    @property
    def has_no_size(self) -> bool:
        """Whether the layout was made with capacity_pages=0, for a pool of unknown
        size."""
        return self.order is LayoutOrder.LAYER_FIRST and self.kv_stride == 0

    def in_pool_of(self, capacity_pages: int) -> KvLayout:
        """Returns the layout of the same pages in a pool of `capacity_pages` pages."""
        strides = _strides(
            capacity_pages, self.layers, self.kv_planes, self.piece_bytes, self.order
        )
        return dataclasses.replace(self, **strides)

    def to_message(self) -> types_pb2.KvLayout:
        """Returns the message without strides, which follow from the size of
        the pool."""
        return types_pb2.KvLayout(
            layers=self.layers,
            kv_planes=self.kv_planes,
            heads=self.heads,
            head_size=self.head_size,
            dtype=f"DTYPE_{self.dtype.name}",
            page_tokens=self.page_tokens,
            order=f"LAYOUT_ORDER_{self.order.name}",
            piece_bytes=self.piece_bytes,
            page_format=self.page_format,
        )

    def fingerprint(self, model: str) -> int:
        """Returns a hash of layout and model, equal to pandod's if both agree."""
        page_format = f";page_format={self.page_format}" if self.page_format else ""
        text = (
            f"pando-kv-layout-v1;layers={self.layers};kv_planes={self.kv_planes};"
            f"heads={self.heads};head_size={self.head_size};"
            f"dtype={self.dtype.value};page_tokens={self.page_tokens};"
            f"order={self.order.value};layer_stride={self.layer_stride};"
            f"page_stride={self.page_stride};kv_stride={self.kv_stride};"
            f"token_stride={self.token_stride};head_stride={self.head_stride}"
            f"{page_format};model={model}"
        )
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    @classmethod
    def from_message(cls, message: types_pb2.KvLayout) -> KvLayout:
        return cls(
            layers=message.layers,
            kv_planes=message.kv_planes,
            heads=message.heads,
            head_size=message.head_size,
            dtype=_known(_DTYPES, message.dtype, "dtype"),
            page_tokens=message.page_tokens,
            order=_known(_ORDERS, message.order, "order"),
            layer_stride=message.layer_stride,
            page_stride=message.page_stride,
            kv_stride=message.kv_stride,
            token_stride=message.token_stride,
            head_stride=message.head_stride,
            # An older pandod does not send piece_bytes, and has no opaque layouts.
            piece_bytes=message.piece_bytes
            or message.page_tokens * message.token_stride,
            page_format=message.page_format,
        )


@dataclass(frozen=True)
class Shard:
    """The pool's memory on one device. Tensor-parallel rank r uses shard r."""

    index: int
    device: str
    size_bytes: int


@dataclass(frozen=True)
class PoolDescription:
    """The description of the pool by pandod. Immutable, so any thread may read it."""

    capacity_pages: int
    """The number of pages of the pool, including the padding page 0."""
    layout: KvLayout
    shards: tuple[Shard, ...]
    model: str
    fingerprint: int
    page_bytes: int
    """The bytes of one page over all layers, in one shard."""
    is_open: bool = False
    """Whether the pool takes its layout from the first worker that attaches with one.
    Until then the pool has no pages, and `layout` means nothing."""
    is_absent: bool = False
    """Whether pandod has blocks and no pool; the other fields then mean nothing."""

    @classmethod
    def from_message(cls, message: types_pb2.PoolDescription) -> PoolDescription:
        return cls(
            capacity_pages=message.capacity_pages,
            layout=KvLayout.from_message(message.layout),
            shards=tuple(
                Shard(shard.index, shard.device, shard.size_bytes)
                for shard in message.shards
            ),
            model=message.model,
            fingerprint=message.fingerprint,
            page_bytes=message.page_bytes,
            is_open=message.is_open,
            is_absent=message.is_absent,
        )


def _strides(
    capacity_pages: int,
    layers: int,
    kv_planes: int,
    piece_bytes: int,
    order: LayoutOrder | str,
) -> dict[str, Any]:
    order = LayoutOrder(order)
    if order is LayoutOrder.LAYER_FIRST:
        page_stride = piece_bytes
        kv_stride = capacity_pages * page_stride
        layer_stride = kv_planes * kv_stride
    else:
        kv_stride = piece_bytes
        layer_stride = kv_planes * kv_stride
        page_stride = layers * layer_stride
    return {
        "order": order,
        "layer_stride": layer_stride,
        "page_stride": page_stride,
        "kv_stride": kv_stride,
    }


def _known(members: Mapping[int, EnumT], value: int, field: str) -> EnumT:
    try:
        return members[value]
    except KeyError:
        raise PandoError(
            "UNKNOWN_LAYOUT", f"the pool's {field} is {value}, unknown to this client"
        ) from None
