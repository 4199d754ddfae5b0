"""vLLM's own CPU offloading for a vLLM that computes on the CPU. It has vLLM's manager
and memory, but Pando's copies, because vLLM's worker copies only from GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pando_kv.vllm.offloading.block_places import PLACE_BYTES, BlockPlaces
from pando_kv.vllm.offloading.host_copies import HostCopies
from pando_kv.vllm.offloading.layout import lay_out
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    GPULoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)
from vllm.v1.kv_offload.cpu.common import CPULoadStoreSpec
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec


@dataclass(frozen=True)
class _Memory:
    bytes: np.ndarray


class OwnOnCpu(CPUOffloadingSpec):
    """An offloading spec, which vLLM makes and owns.

    The options `spec_name` and `spec_module_path` choose it. Its size is vLLM's option
    `cpu_bytes_to_use`."""

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        if self._worker is None:
            self._worker = _Worker(self, kv_caches)
        return self._worker


class _Worker(OffloadingWorker):
    def __init__(self, spec: OwnOnCpu, kv_caches: CanonicalKVCaches) -> None:
        layout = lay_out(spec.config, kv_caches)
        chunk = spec.kv_bytes_per_chunk
        memory = _Memory(np.zeros(spec.num_chunks * chunk, np.uint8))
        self._places = chunk // PLACE_BYTES  # in a chunk
        self._copies = HostCopies(layout, memory, [chunk] * len(layout.groups))

    def submit_store(
        self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: CPULoadStoreSpec
    ) -> bool:
        self._copies.store(job_id, src_spec, self._places_of(dst_spec))
        return True

    def submit_load(
        self, job_id: int, src_spec: CPULoadStoreSpec, dst_spec: GPULoadStoreSpec
    ) -> bool:
        self._copies.load(job_id, self._places_of(src_spec), dst_spec)
        return True

    def get_finished(self) -> list[TransferResult]:
        return self._copies.take_finished()

    def wait(self, job_ids: set[int]) -> None:
        """Returns at once, because each copy is done when it is submitted."""

    def _places_of(self, spec: CPULoadStoreSpec) -> BlockPlaces:
        return BlockPlaces((spec.block_ids * self._places).tolist(), 0, 0)
