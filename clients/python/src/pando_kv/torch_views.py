"""A mapped pool as torch tensors. Importing this module needs no torch; using
it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pando_kv._kv_views import KvViews
from pando_kv._shard_memory import ShardMemory
from pando_kv.layout import DType, PoolDescription


class TorchViews(KvViews[Any]):
    """The KV pool as torch tensors over its memory, on its devices; nothing is copied.
    Any thread may use them.

    `MappedPool.torch()` makes this object. Tensors have the layout's dtype and strides,
    and keep the memory mapped. Write only to pages that the session has reserved.
    """

    def __init__(
        self, description: PoolDescription, shards: Mapping[int, ShardMemory]
    ) -> None:
        import torch  # optional, and slow to import

        super().__init__(description, shards)
        self._torch = torch
        dtype = {
            DType.FLOAT32: torch.float32,
            DType.FLOAT16: torch.float16,
            DType.BFLOAT16: torch.bfloat16,
            DType.FLOAT8_E4M3: torch.float8_e4m3fn,
            DType.FLOAT8_E5M2: torch.float8_e5m2,
            DType.OPAQUE: torch.uint8,
        }[description.layout.dtype]
        self._bytes = {i: shard.tensor(torch) for i, shard in shards.items()}
        self._memory = {i: memory.view(dtype) for i, memory in self._bytes.items()}

    def memory(self, shard: int = 0) -> Any:
        """Returns all bytes of a shard, as torch.uint8: (size_bytes,)."""
        self._check_shard(shard)
        return self._bytes[shard]

    def _array(
        self, shard: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Any:
        element = self.layout.dtype.numpy.itemsize
        return self._torch.as_strided(
            self._memory[shard],
            shape,
            [stride // element for stride in strides],
            offset // element,
        )
