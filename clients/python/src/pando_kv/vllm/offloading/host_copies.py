"""Copies between vLLM's KV memory and the block memory when both are host memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from vllm.v1.kv_offload.base import GPULoadStoreSpec, TransferResult

from pando_kv import _native
from pando_kv.vllm.offloading.block_places import PLACE_BYTES, BlockPlaces
from pando_kv.vllm.offloading.layout import Layout, Piece

Addresses = npt.NDArray[np.int64]


class HostCopies:
    """Copies to and from one mapping of the block memory. PandoWorker owns it, and its
    thread copies; another thread may close it when it is idle. A copy is done when its
    call returns."""

    def __init__(self, layout: Layout, memory: Any, shard_stride: list[int]) -> None:
        """Takes an attached BlockMemory, and for each group the `shard_stride` of its
        kind: the bytes from one shard of a block to the next."""
        self._memory = memory  # This reference keeps the memory mapped.
        self._layout = layout
        self._base = memory.bytes.ctypes.data
        self._shard_at = [layout.shard * stride for stride in shard_stride]
        self._fragments = [
            [_fragments(piece, layout.is_canonical) for piece in pieces]
            for pieces in layout.groups
        ]
        self._done: list[TransferResult] = []

    def store(self, job_id: int, source: GPULoadStoreSpec, target: BlockPlaces) -> None:
        self._transfer(job_id, source, target, is_store=True)

    def load(self, job_id: int, source: BlockPlaces, target: GPULoadStoreSpec) -> None:
        self._transfer(job_id, target, source, is_store=False)

    @property
    def is_idle(self) -> bool:
        return not self._done

    def take_finished(self) -> list[TransferResult]:
        done, self._done = self._done, []
        return done

    def wait(self, job_ids: set[int]) -> None:
        """Does nothing, because each copy was done when its call returned."""

    def close(self) -> None:
        self._memory = None

    def _transfer(
        self, job_id: int, kv: GPULoadStoreSpec, places: BlockPlaces, is_store: bool
    ) -> None:
        begun, copied = time.perf_counter(), 0
        first_block = first_place = 0
        per_chunk = self._layout.blocks_per_chunk
        for group, (count, index) in enumerate(
            zip(kv.group_sizes, kv.block_indices, strict=True)
        ):
            if not count:
                continue
            # The first block may lie in the middle of its chunk.
            chunks, within = np.divmod(np.arange(count) + index % per_chunk, per_chunk)
            blocks = kv.block_ids[first_block : first_block + count]
            at = places.block_ids[first_place + chunks].astype(np.int64)
            copied += self._copy(group, blocks.astype(np.int64), at, within, is_store)
            first_block += count
            first_place += int(chunks[-1]) + 1
        assert (first_block, first_place) == (len(kv.block_ids), len(places.block_ids))
        seconds = time.perf_counter() - begun
        self._done.append(TransferResult(job_id, True, copied, seconds))

    def _copy(
        self,
        group: int,
        blocks: Addresses,
        places: Addresses,
        within: Addresses,
        is_store: bool,
    ) -> int:
        copied = 0
        per_chunk = self._layout.blocks_per_chunk
        for piece, (local, there, sizes) in zip(
            self._layout.groups[group], self._fragments[group], strict=True
        ):
            pages = piece.pages
            kv = pages.data_ptr() + blocks * pages.stride(0)
            host = self._base + self._shard_at[group] + piece.offset
            host = host + places * PLACE_BYTES + within * piece.page_bytes
            if is_store and piece.ref.mapping is not None and self._layout.is_canonical:
                # Ranks that have the same bytes share the work of writing them.
                mapping = piece.ref.mapping
                turn = (places * per_chunk + within) % mapping.num_writers
                kv, host = (each[turn == mapping.writer_index] for each in (kv, host))
            mine, theirs = kv[:, None] + local, host[:, None] + there
            to, come = (theirs, mine) if is_store else (mine, theirs)
            _native.copy(
                to.ravel().view(np.uint64),
                come.ravel().view(np.uint64),
                np.tile(sizes, len(kv)).view(np.uint64),
            )
            copied += int(sizes.sum()) * len(kv)
        return copied


def _fragments(
    piece: Piece, is_canonical: bool
) -> tuple[Addresses, Addresses, Addresses]:
    """Returns the fragments of a page as three arrays: where each fragment begins in
    vLLM's page, where it begins in the page of the block memory, and its size, all in
    bytes."""
    if not is_canonical:
        found = [(0, 0, piece.page_bytes)]
    else:
        found = [
            (
                run.local_offset + n * run.local_stride,
                run.canonical_offset + n * run.canonical_stride,
                run.fragment_size,
            )
            for run in piece.ref.mapping.runs
            for n in range(run.num_fragments)
        ]
    local, there, sizes = np.array(found, np.int64).T
    return local, there, sizes
