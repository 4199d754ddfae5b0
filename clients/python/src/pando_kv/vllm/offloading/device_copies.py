"""Copies between the KV memory of a GPU and the block memory. vLLM's own handler makes
them, with vLLM's kernels and streams.

The handler has one tensor for each layer, and addresses a block as base + id * row
stride. Here the id of a block is its place, rows are PLACE_BYTES apart, and a tensor
begins where the layer's pages begin in the shard. Rows longer than PLACE_BYTES overlap,
but only the rows at which blocks begin are used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from vllm.v1.kv_offload.base import (
    CanonicalKVCacheRef,
    GPULoadStoreSpec,
    TransferResult,
)
from vllm.v1.kv_offload.cpu.gpu_worker import SingleDirectionOffloadingHandler

from pando_kv.vllm.offloading.block_places import PLACE_BYTES, BlockPlaces
from pando_kv.vllm.offloading.host_register import host_register, host_unregister
from pando_kv.vllm.offloading.layout import Layout


class DeviceCopies:
    """Copies to and from one mapping of the block memory, which it registers with the
    device. Copies go on after their calls return. PandoWorker owns it, and its thread
    copies; another thread may close it when it is idle."""

    def __init__(self, layout: Layout, memory: Any, shard_stride: list[int]) -> None:
        """Takes the arguments of HostCopies."""
        device = layout.groups[0][0].pages.device
        if device.type == "cuda":
            torch.cuda.set_device(device)  # This thread may be new.
        self._memory = memory
        self._host = torch.from_numpy(memory.bytes).view(torch.int8)
        address = self._host.data_ptr()
        is_registered = host_register(address, self._host.numel())
        self._registered = address if is_registered else None
        # Each layer of each group has one tensor on either side.
        refs: list[list[CanonicalKVCacheRef]] = []
        kv: list[torch.Tensor] = []
        host: list[torch.Tensor] = []
        for group, pieces in enumerate(layout.groups):
            refs.append([])
            for piece in pieces:
                refs[-1].append(replace(piece.ref, tensor_idx=len(kv)))
                kv.append(piece.pages)
                begin = layout.shard * shard_stride[group] + piece.offset
                width = piece.page_bytes * layout.blocks_per_chunk
                host.append(self._rows(begin, width))
        self._store, self._load = (
            SingleDirectionOffloadingHandler(
                gpu_tensors=list(kv),
                cpu_tensors=list(host),
                blocks_per_chunk=layout.blocks_per_chunk,
                layer_refs_per_group=refs,
                gpu_to_cpu=gpu_to_cpu,
                canonical_layout=layout.is_canonical,
                host_memory_is_pinned=is_registered,
            )
            for gpu_to_cpu in (True, False)
        )
        self._under_way: set[int] = set()

    def store(self, job_id: int, source: GPULoadStoreSpec, target: BlockPlaces) -> None:
        self._under_way.add(job_id)
        self._store.transfer_async(job_id, source, target)

    def load(self, job_id: int, source: BlockPlaces, target: GPULoadStoreSpec) -> None:
        self._under_way.add(job_id)
        self._load.transfer_async(job_id, source, target)

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def take_finished(self) -> list[TransferResult]:
        done: list[TransferResult] = (
            self._store.get_finished() + self._load.get_finished()
        )
        self._under_way.difference_update(result.job_id for result in done)
        return done

    def wait(self, job_ids: set[int]) -> None:
        self._store.wait(job_ids)
        self._load.wait(job_ids)

    def close(self) -> None:
        """Waits for the copies that are under way, and unmaps the memory."""
        self._store.shutdown()
        self._load.shutdown()
        if self._registered is not None:
            host_unregister(self._registered)
        self._memory = self._host = None

    def _rows(self, begin: int, width: int) -> torch.Tensor:
        rows = (self._host.numel() - begin - width) // PLACE_BYTES + 1
        return self._host.as_strided((rows, width), (PLACE_BYTES, 1), begin)
