"""The layout of each group's blocks in the block memory.

A block of Pando holds a chunk: `blocks_per_chunk` of vLLM's blocks of one group. Each
rank has one shard of it, which holds for each layer of the group the pages of those
vLLM blocks, one after the other. If the bytes of all ranks are the same, or vLLM knows
how they make up one page (`canonical_layout`), all ranks share a single shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.kv_offload.base import CanonicalKVCacheRef, CanonicalKVCaches
from vllm.v1.kv_offload.config import OffloadingConfig


@dataclass(frozen=True)
class Piece:
    """The pages of one layer, or of several layers that lie together, in a shard."""

    ref: CanonicalKVCacheRef
    pages: torch.Tensor
    """The layer's pages in vLLM's memory: (blocks, bytes), int8."""
    page_bytes: int
    """The bytes that one page takes in the shard."""
    offset: int
    """The byte of the shard at which the first page begins."""


@dataclass(frozen=True)
class Layout:
    """The layout of one rank's blocks. The layouts of all ranks are equal except for
    `shard` and the pages in vLLM's memory. Immutable."""

    groups: list[list[Piece]]
    blocks_per_chunk: int
    is_canonical: bool
    is_portable: bool
    """Whether the bytes are the same for every number of ranks."""
    shards: int
    shard: int

    def shard_bytes(self, group: int) -> int:
        last = self.groups[group][-1]
        return last.offset + last.page_bytes * self.blocks_per_chunk

    def description(self) -> list[Any]:
        """Returns the values that determine the inside of a block, for its identity."""
        return [
            self.blocks_per_chunk,
            self.is_canonical,
            self.shards,
            [[piece.page_bytes for piece in pieces] for pieces in self.groups],
        ]


def lay_out(config: OffloadingConfig, kv_caches: CanonicalKVCaches) -> Layout:
    """Returns the layout of this rank's blocks. Raises ValueError if the operator asked
    for a canonical layout and vLLM has none for some layer."""
    parallel = config.parallel
    is_one = config.canonical_layout or config.replicated_layout
    refs = [ref for group in kv_caches.group_data_refs for ref in group]
    return Layout(
        groups=[
            _pieces(config, kv_caches, group) for group in kv_caches.group_data_refs
        ],
        blocks_per_chunk=config.cache.blocks_per_chunk,
        is_canonical=config.canonical_layout,
        is_portable=config.canonical_layout
        and parallel.is_parallelism_agnostic
        and all(ref.mapping.parallelism_agnostic for ref in refs),
        shards=1 if is_one else parallel.world_size,
        shard=0 if is_one else parallel.rank,
    )


def _pieces(
    config: OffloadingConfig,
    kv_caches: CanonicalKVCaches,
    refs: list[CanonicalKVCacheRef],
) -> list[Piece]:
    pieces, offset = [], 0
    for ref in refs:
        tensor = kv_caches.tensors[ref.tensor_idx].tensor.view(torch.int8)
        page_bytes = ref.page_size_bytes
        if config.canonical_layout:
            if ref.mapping is None:
                raise ValueError(
                    "canonical_layout is true, and vLLM knows no canonical layout for "
                    "each layer of this model"
                )
            page_bytes = ref.mapping.canonical_page_size_bytes
        pages = tensor[:, : ref.page_size_bytes]
        pieces.append(Piece(ref, pages, page_bytes, offset))
        offset += page_bytes * config.cache.blocks_per_chunk
    return pieces
