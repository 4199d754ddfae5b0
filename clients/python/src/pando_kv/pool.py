"""The pool's memory, mapped into this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pando_kv._kv_views import KvViews
from pando_kv._memory_socket import fetch_memory
from pando_kv._shard_memory import ShardMemory, map_shard
from pando_kv.errors import PandoError
from pando_kv.layout import PoolDescription
from pando_kv.torch_views import TorchViews


class MappedPool(KvViews[npt.NDArray[Any]]):
    """The KV pool as numpy arrays over the shared memory itself; nothing is copied.
    Owned by the caller that attached the pool. Any thread may call it; threads
    synchronise their accesses as for any memory.

    A pool on GPUs is available through `torch()` only. Every worker sees at once what
    is written to a page. Write only to pages that the session has reserved, and read
    only pages that a match or an insert returned. A mapping belongs to one session:
    when that is lost, close the mapping and attach again, even if the epoch stays.
    """

    def __init__(
        self,
        description: PoolDescription,
        epoch: int,
        memory: list[tuple[int, int]],
        shards: Sequence[int] | None = None,
        addresses: Sequence[int] = (),
    ) -> None:
        """Maps `shards`, or all shards if that is None. `memory` has the (descriptor,
        bytes) of every shard of the pool; its descriptors are closed.

        Raises PandoError if the sizes differ from those of the description.
        """
        super().__init__(description, shards)
        self.epoch = epoch
        self._shards: dict[int, ShardMemory] = {}
        wanted = [*addresses, *(0 for _ in memory)]
        try:
            _check_sizes([size for _, size in memory], description)
            for shard in self.mapped:
                self._check_shard(shard)
                device = description.shards[shard].device
                self._shards[shard] = map_shard(device, *memory[shard], wanted[shard])
        except BaseException:
            # The traceback of the error keeps this object alive, so its memory is
            # unmapped here.
            self.close()
            raise
        finally:
            for fd, _ in memory:
                os.close(fd)

    @classmethod
    def attach(
        cls,
        description: PoolDescription,
        epoch: int,
        memory_socket: str,
        token: bytes,
        timeout: float,
        shards: Sequence[int] | None = None,
        addresses: Sequence[int] = (),
    ) -> MappedPool:
        memory = fetch_memory(memory_socket, token, timeout)
        return cls(description, epoch, memory, shards, addresses)

    @property
    def addresses(self) -> tuple[int, ...]:
        """The address of each shard of the pool on its GPU, for `attach_pool`; 0 for
        host memory and for a shard that is not mapped."""
        return tuple(
            self._shards[shard].address if shard in self._shards else 0
            for shard in range(len(self.description.shards))
        )

    def numpy(self) -> MappedPool:
        """Returns this object, so that callers can choose `numpy()` or `torch()`."""
        return self

    def memory(self, shard: int = 0) -> npt.NDArray[np.uint8]:
        """Returns all bytes of a shard: (size_bytes,). Raises ValueError after close()
        and for a shard on a GPU."""
        self._check_open()
        self._check_shard(shard)
        return self._shards[shard].array()

    def torch(self) -> TorchViews:
        """Returns the same views as torch tensors, on the shards' devices. Needs torch.
        Raises ValueError after close()."""
        self._check_open()
        return TorchViews(self.description, self._shards)

    def close(self) -> None:
        """Unmaps host memory. Raises BufferError while there are views of it.

        The memory of a GPU is unmapped with its last tensor.
        """
        for shard in reversed(list(self._shards)):
            self._shards[shard].close()
            del self._shards[shard]

    def __enter__(self) -> MappedPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._shards:
            raise ValueError("the pool is closed")

    def _array(
        self, shard: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        self._check_open()
        return np.ndarray(
            shape, self.layout.dtype.numpy, self._shards[shard].array(), offset, strides
        )


def _check_sizes(sizes: list[int], description: PoolDescription) -> None:
    """Raises PandoError unless the sizes are those of the description: a smaller shard
    would give views that reach beyond its memory."""
    described = [shard.size_bytes for shard in description.shards]
    if sizes != described:
        raise PandoError(
            "MEMORY_SOCKET",
            f"memory socket sent shards of {sizes} bytes; the pool is described with "
            f"{described}",
        )
