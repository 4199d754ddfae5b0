"""The layout of a block, and the copies of the ranks that share the block."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pando_kv.vllm.offloading.block_places import BlockPlaces
from pando_kv.vllm.offloading.host_copies import HostCopies
from pando_kv.vllm.offloading.layout import lay_out
from vllm.v1.kv_offload.base import (
    CanonicalKVCacheRef,
    CanonicalKVCaches,
    CanonicalKVCacheTensor,
    CanonicalPageMapping,
    CopyRun,
    GPULoadStoreSpec,
)
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig,
    OffloadingConfig,
    OffloadingGroupConfig,
    OffloadingModelConfig,
    OffloadingParallelConfig,
)

BLOCKS, TOKENS, HEADS, HEAD_BYTES = 12, 4, 4, 8
PAGE_BYTES = TOKENS * HEADS * HEAD_BYTES  # for all heads
MEMORY_BYTES = 1 << 20


def config(ranks, rank, per_chunk, canonical=False, replicated=False, groups=1):
    return OffloadingConfig(
        groups=tuple(
            OffloadingGroupConfig(TOKENS, (f"layer {g}",), g) for g in range(groups)
        ),
        worker_kv_bytes_per_block=PAGE_BYTES // ranks,
        enable_kv_cache_events=False,
        extra_config={},
        engine_id="engine",
        model=OffloadingModelConfig("model", "uint8"),
        cache=OffloadingCacheConfig(TOKENS, per_chunk),
        parallel=OffloadingParallelConfig(
            rank, ranks, ranks, 1, 1, 1, 0, 1, None, canonical
        ),
        replicated_layout=replicated,
        canonical_layout=canonical,
    )


def kv_of(heads, ranks, rank):
    """Returns a copy of a rank's heads from an array (block, token, head, byte)."""
    mine = HEADS // ranks
    part = heads[:, :, rank * mine : (rank + 1) * mine]
    return torch.from_numpy(part.reshape(BLOCKS, -1).copy()).view(torch.int8)


def mapping(ranks, rank):
    row = HEADS // ranks * HEAD_BYTES
    run = CopyRun(0, rank * row, row, TOKENS, row, HEADS * HEAD_BYTES)
    return CanonicalPageMapping(PAGE_BYTES, PAGE_BYTES // ranks, (run,), 1, 0, True)


def copies_of(given, tensors, memory, refs=None):
    if refs is None:
        of_rank = given.parallel
        found = None
        if given.canonical_layout:
            found = mapping(of_rank.world_size, of_rank.rank)
        refs = [[CanonicalKVCacheRef(0, tensors[0].shape[1], found)]]
    caches = CanonicalKVCaches(
        [CanonicalKVCacheTensor(each, each.shape[1]) for each in tensors], refs
    )
    layout = lay_out(given, caches)
    strides = [-(-layout.shard_bytes(g) // 4096) * 4096 for g in range(len(refs))]
    return HostCopies(layout, SimpleNamespace(bytes=memory), strides), layout


@pytest.fixture
def heads():
    return np.random.default_rng(1).integers(
        0, 128, (BLOCKS, TOKENS, HEADS, HEAD_BYTES), np.uint8
    )


@pytest.fixture
def memory():
    return np.zeros(MEMORY_BYTES, np.uint8)


@pytest.mark.parametrize("per_chunk", [1, 3])
def test_each_rank_reads_what_it_wrote(heads, memory, per_chunk):
    places = BlockPlaces([3, 17, 40, 55, 60, 72][: 6 // per_chunk], 1, 1)
    blocks = GPULoadStoreSpec([5, 1, 2, 3, 9, 8], [6], [0])
    for rank in range(2):
        kv = kv_of(heads, 2, rank)
        wrote, layout = copies_of(config(2, rank, per_chunk), [kv], memory)
        assert (layout.shards, layout.shard) == (2, rank)
        wrote.store(1, blocks, places)
    for rank in range(2):
        kv, empty = kv_of(heads, 2, rank), torch.zeros_like(kv_of(heads, 2, rank))
        read, _ = copies_of(config(2, rank, per_chunk), [empty], memory)
        # The engine already has the first two blocks of a chunk of three.
        skip = 2 if per_chunk == 3 else 0
        target = GPULoadStoreSpec([5, 1, 2, 3, 9, 8][skip:], [6 - skip], [skip])
        read.load(2, places, target)
        assert torch.equal(empty[target.block_ids], kv[target.block_ids])
        assert int((empty != 0).any(dim=1).sum()) == 6 - skip
        (result,) = read.take_finished()
        assert result.success
        assert result.transfer_size == (6 - skip) * PAGE_BYTES // 2


def test_engines_of_other_sizes_share_what_has_one_layout(heads, memory):
    places, blocks = BlockPlaces([3, 17], 1, 1), GPULoadStoreSpec([5, 1], [2], [0])
    described = set()
    for rank in range(2):
        given = config(2, rank, 1, canonical=True)
        wrote, layout = copies_of(given, [kv_of(heads, 2, rank)], memory)
        assert (layout.shards, layout.shard, layout.is_portable) == (1, 0, True)
        described.add(repr(layout.description()))
        wrote.store(1, blocks, places)
    whole = torch.zeros_like(kv_of(heads, 1, 0))
    read, layout = copies_of(config(1, 0, 1, canonical=True), [whole], memory)
    described.add(repr(layout.description()))
    read.load(2, places, blocks)
    assert torch.equal(whole[[5, 1]], kv_of(heads, 1, 0)[[5, 1]])
    assert len(described) == 1


def test_ranks_with_the_same_bytes_have_one_shard(heads, memory):
    given = config(2, 1, 1, replicated=True)
    _, layout = copies_of(given, [kv_of(heads, 1, 0)], memory)
    assert (layout.shards, layout.shard, layout.is_portable) == (1, 0, False)


def test_groups_have_blocks_of_their_own_sizes(heads, memory):
    """Two groups share a tensor of vLLM, in which their pages have different sizes."""
    kv, small = kv_of(heads, 1, 0), kv_of(heads, 2, 0)
    refs = [
        [CanonicalKVCacheRef(0, PAGE_BYTES), CanonicalKVCacheRef(1, PAGE_BYTES // 2)],
        [CanonicalKVCacheRef(0, PAGE_BYTES // 4)],
    ]
    given = config(1, 0, 1, groups=2)
    wrote, layout = copies_of(given, [kv, small], memory, refs)
    assert [layout.shard_bytes(group) for group in range(2)] == [
        PAGE_BYTES * 3 // 2,
        PAGE_BYTES // 4,
    ]
    places = BlockPlaces([3, 17, 40], 1, 1)
    wrote.store(1, GPULoadStoreSpec([5, 1, 7], [2, 1], [0, 4]), places)
    empty = [torch.zeros_like(kv), torch.zeros_like(small)]
    read, _ = copies_of(given, empty, memory, refs)
    read.load(2, places, GPULoadStoreSpec([5, 1, 7], [2, 1], [0, 4]))
    assert torch.equal(empty[0][[5, 1]], kv[[5, 1]])
    assert torch.equal(empty[1][[5, 1]], small[[5, 1]])
    quarter = PAGE_BYTES // 4
    assert torch.equal(empty[0][7, :quarter], kv[7, :quarter])
    assert not empty[0][7, quarter:].any()


def test_a_canonical_layout_that_vllm_does_not_know_is_refused(heads, memory):
    kv = kv_of(heads, 1, 0)
    with pytest.raises(ValueError, match="canonical_layout"):
        copies_of(
            config(1, 0, 1, canonical=True),
            [kv],
            memory,
            [[CanonicalKVCacheRef(0, PAGE_BYTES)]],
        )
