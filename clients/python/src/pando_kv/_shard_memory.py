"""The memory of one shard in this process, on the host or on a GPU."""

from __future__ import annotations

import mmap
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pando_kv._cuda import CudaMemory
from pando_kv.errors import PandoError

_GPU = "cuda:"


class ShardMemory(Protocol):
    """The mapped memory of one shard. Owned by a MappedPool."""

    address: int
    """The address of the memory for kernels; 0 for host memory."""

    def array(self) -> npt.NDArray[np.uint8]:
        """Returns all bytes: (size_bytes,). Raises ValueError for GPU memory."""

    def tensor(self, torch: Any) -> Any:
        """Returns all bytes as a torch.uint8 tensor: (size_bytes,)."""

    def close(self) -> None:
        """Unmaps the memory. Raises BufferError while views of host memory are
        in use."""


def map_shard(device: str, fd: int, size: int, wanted_address: int) -> ShardMemory:
    """Maps a shard. The descriptor stays open. `wanted_address` matters for GPUs only.
    Raises PandoError for a device that this client does not know."""
    if device == "host":
        return HostShard(fd, size)
    if device.startswith(_GPU):
        return GpuShard(CudaMemory(device[len(_GPU) :], fd, size, wanted_address))
    raise PandoError(
        "MEMORY_SOCKET", f"the pool is on '{device}', which this client does not know"
    )


class HostShard:
    address = 0

    def __init__(self, fd: int, size: int) -> None:
        self._map = mmap.mmap(fd, size)

    def array(self) -> npt.NDArray[np.uint8]:
        # np.ndarray would not hold the map's buffer, and close() would unmap memory
        # that the array still shows; np.frombuffer holds it.
        return np.frombuffer(self._map, np.uint8)

    def tensor(self, torch: Any) -> Any:
        return torch.from_numpy(self.array())

    def close(self) -> None:
        try:
            self._map.close()
        except BufferError:
            raise BufferError(
                "views of the pool are still in use; delete them, then close the "
                "pool again"
            ) from None


class GpuShard:
    def __init__(self, memory: CudaMemory) -> None:
        self._memory: CudaMemory | None = memory
        self.address = memory.address

    def array(self) -> npt.NDArray[np.uint8]:
        raise ValueError("the pool is on a GPU, which numpy cannot reach; use torch()")

    def tensor(self, torch: Any) -> Any:
        assert self._memory is not None
        device = torch.device("cuda", self._memory.ordinal)
        return torch.as_tensor(self._memory, device=device)

    def close(self) -> None:
        # Tensors keep the memory mapped; the last one unmaps it.
        self._memory = None
