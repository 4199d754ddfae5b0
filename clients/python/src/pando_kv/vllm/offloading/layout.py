"""What a block of each group consists of, in the memory of Pando.

A block holds a chunk: `blocks_per_chunk` of vLLM's blocks of one group. Its shard is
the part of one rank: for each layer of the group the pages of those blocks, one after
the other. Where the bytes of all ranks are the same, or vLLM knows how they make up one
page (`canonical_layout`), there is one shard, which all ranks read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.kv_offload.base import CanonicalKVCacheRef, CanonicalKVCaches
from vllm.v1.kv_offload.config import OffloadingConfig


@dataclass(frozen=True)
class Piece:
    """The pages of one layer, or of several that lie together, in a shard."""

    ref: CanonicalKVCacheRef
    pages: torch.Tensor
    """vLLM's memory: (blocks, bytes), int8."""
    page_bytes: int
    """What a page takes in the shard."""
    offset: int
    """Where the first page begins in the shard."""


@dataclass(frozen=True)
class Layout:
    """Of one rank; equal in all ranks but for `shard` and the pages."""

    groups: list[list[Piece]]
    blocks_per_chunk: int
    is_canonical: bool
    is_portable: bool
    """The bytes do not depend on how many ranks there are."""
    shards: int
    shard: int

    def shard_bytes(self, group: int) -> int:
        last = self.groups[group][-1]
        return last.offset + last.page_bytes * self.blocks_per_chunk

    def description(self) -> list[Any]:
        """What determines the inside of a block, for its identity."""
        return [
            self.blocks_per_chunk,
            self.is_canonical,
            self.shards,
            [[piece.page_bytes for piece in pieces] for pieces in self.groups],
        ]


def lay_out(config: OffloadingConfig, kv_caches: CanonicalKVCaches) -> Layout:
    """Raises ValueError where a canonical layout was asked for which vLLM does not
    know for each layer."""
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
