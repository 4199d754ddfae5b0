"""The copy mode in vLLM's workers, without vLLM's model."""

import numpy as np
import pytest
import torch
from engines.models import LAYERS
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT, POOL
from eventually import eventually
from kept_pandod import kept
from pando_kv import Client, UnavailableError
from pando_kv.vllm import copy_layers
from pando_kv.vllm.copy_layers import CopyLayers
from pando_kv.vllm.copy_plan import Copy, CopyPlan
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages, format_of
from torch.utils._python_dispatch import TorchDispatchMode
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheTensor,
    create_kv_cache_views,
)
from vllm.v1.kv_cache_layout import KVCacheLayout

PAGES = 16


@pytest.fixture
def client(tmp_path):
    server = serve_pool(tmp_path, PAGES)
    with Client(server.address) as client:
        yield client
    server.close()


def blocks_of_kernels(memory, ratio):
    """Views of vLLM's memory for kernels whose blocks are `ratio` times smaller than
    the scheduler's."""
    layers = [f"layer.{n}" for n in range(LAYERS)]
    spec = FullAttentionSpec(
        block_size=BLOCK_TOKENS, num_kv_heads=2, head_size=32, dtype=torch.float32
    )
    blocks = memory.numel() // (LAYERS * BLOCK_BYTES)
    tensor = KVCacheTensor(
        size=memory.numel(),
        layers=layers,
        layer_stride=blocks * BLOCK_BYTES,
        block_stride=BLOCK_BYTES,
    )
    views = create_kv_cache_views(
        memory, spec, blocks, KVCacheLayout.LBNHC, tensor, BLOCK_TOKENS // ratio
    )
    assert views[0].shape[0] == blocks * ratio
    return dict(zip(layers, views, strict=True))


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_a_block_of_the_scheduler_is_copied_whole(client, ratio):
    blocks = 8
    random = np.random.default_rng(ratio)
    before = random.integers(0, 256, (LAYERS, blocks, BLOCK_BYTES), np.uint8)
    memory = torch.from_numpy(before.copy()).view(torch.int8).flatten()
    worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), blocks)
    worker.register(blocks_of_kernels(memory, ratio), BLOCK_TOKENS)
    pages = client.allocate_pages(3).tolist()

    plan = CopyPlan(epoch=client.epoch, session_id=client.session_id)
    plan.saves = {1: Copy("a", pages, [3, 7, 1])}
    worker.save(plan)
    with client.attach_pool() as pool:
        for layer in range(LAYERS):
            saved = pool.opaque_pages(layer)[pages].reshape(3, BLOCK_BYTES)
            assert (saved == before[layer, [3, 7, 1]]).all(), f"layer {layer}"

    plan.loads = {2: Copy("b", pages, [6, 0, 2])}
    worker.load(plan)
    expected = before.copy()
    expected[:, [6, 0, 2]] = before[:, [3, 7, 1]]
    after = memory.numpy().view(np.uint8).reshape(expected.shape)
    assert (after == expected).all()


def test_the_pool_of_a_pandod_that_died_is_let_go_and_mapped_again_when_needed(
    tmp_path,
):
    blocks, free = 8, PAGES - 1
    memory = torch.zeros(LAYERS * blocks * BLOCK_BYTES, dtype=torch.int8)
    with kept(tmp_path, pool_pages=PAGES, **POOL) as server:
        with Client(server.address) as client, Client(server.address) as other:
            worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), blocks)
            worker.register(blocks_of_kernels(memory, 1), BLOCK_TOKENS)
            epoch = client.epoch
            server.kill_server()
            eventually(lambda: epoch_of(client) not in (None, epoch))
            eventually(lambda: epoch_of(other) == epoch_of(client))
            assert other.stats().pages.quarantined == free
            worker.begin(CopyPlan(epoch=epoch, session_id=1))
            eventually(lambda: other.stats().pages.free == free)

            pages = client.allocate_pages(1).tolist()
            plan = CopyPlan(epoch=client.epoch, session_id=client.session_id)
            plan.saves = {1: Copy("a", pages, [3])}
            worker.begin(plan)
            worker.save(plan)
            assert worker.report().failed == set()


def epoch_of(client):
    """None while it has no session."""
    try:
        return client.epoch
    except UnavailableError:
        return None


class Launches(TorchDispatchMode):
    """Counts what is gathered and scattered, in which element types; a GPU launches a
    kernel for each."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.types: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (
            torch.ops.aten.index_select,
            torch.ops.aten.index_copy_,
        ):
            self.count += 1
            self.types.add(args[0].dtype)
        return func(*args, **kwargs or {})


def test_copies_are_four_launches_a_step_whatever_the_requests(client):
    blocks = 16
    memory = torch.zeros(LAYERS * blocks * BLOCK_BYTES, dtype=torch.int8)
    worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), blocks)
    worker.register(blocks_of_kernels(memory, 1), BLOCK_TOKENS)
    pages = client.allocate_pages(14).tolist()
    plan = CopyPlan(epoch=client.epoch, session_id=client.session_id)
    plan.loads = {n: Copy(str(n), [pages[n]], [n]) for n in range(7)}
    plan.saves = {n: Copy(str(n), [pages[n]], [n]) for n in range(7, 14)}
    with Launches() as launches:
        worker.load(plan)
        worker.save(plan)
    assert launches.count == 4
    # The widest pieces: a kernel moves one at a time.
    assert launches.types == {torch.int64}
    assert worker.report().failed == set()


class Makes(TorchDispatchMode):
    """Notes the memory of all that operations give back."""

    def __init__(self):
        super().__init__()
        self.sizes: dict[int, int] = {}  # by address

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        if isinstance(result, torch.Tensor):
            memory = result.untyped_storage()
            self.sizes[memory.data_ptr()] = memory.nbytes()
        return result


def test_a_step_makes_no_memory_but_for_the_numbers_of_blocks(client):
    """A device that is full has no room for what is gathered."""
    blocks = 16
    memory = torch.zeros(LAYERS * blocks * BLOCK_BYTES, dtype=torch.int8)
    worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), blocks)
    worker.register(blocks_of_kernels(memory, 1), BLOCK_TOKENS)
    (page,) = client.allocate_pages(1).tolist()
    plan = CopyPlan(epoch=client.epoch, session_id=client.session_id)
    plan.loads, plan.saves = {1: Copy("a", [page], [1])}, {2: Copy("b", [page], [2])}
    worker.save(plan)
    with Makes() as makes:
        worker.load(plan)
        worker.save(plan)
    layers = worker._layers
    for known in (layers._scratch, *layers._blocks, *layers._pages):
        makes.sizes.pop(known.untyped_storage().data_ptr(), None)
    assert sum(makes.sizes.values()) <= 1024


def test_a_rank_maps_its_own_shard(tmp_path):
    """Each of them is a context on its GPU, which another rank may not even see."""
    blocks = 8
    memory = torch.zeros(LAYERS * blocks * BLOCK_BYTES, dtype=torch.int8)
    server = serve_pool(tmp_path, PAGES, pool_shards=2)
    with Client(server.address) as client:
        worker = CopyWorker(client, 1, StatedPages(MODEL, "", PAGE_FORMAT), blocks)
        worker.register(blocks_of_kernels(memory, 1), BLOCK_TOKENS)
        assert worker._pool.mapped == (1,)
    server.close()


@pytest.mark.parametrize("gap", [0, 4])
def test_what_is_larger_than_the_scratch_memory_is_copied_in_parts(monkeypatch, gap):
    """Rows of 20 bytes, or of 24; layers that are not evenly apart, too."""
    monkeypatch.setattr(copy_layers, "_SCRATCH_BYTES", 100)
    random = np.random.default_rng(gap)
    memory = torch.from_numpy(random.integers(0, 256, (3, 10, 20 + gap), np.uint8))
    pages = torch.zeros_like(memory)
    uneven = [memory[0], memory[1], memory[2].clone()]
    ids = ([9, 1, 4, 0, 7, 2], [3, 8, 0, 1, 9, 5])
    for blocks in (list(memory), uneven):
        pages.zero_()
        CopyLayers(blocks, list(pages)).save(*ids)
        expected = torch.zeros_like(memory)
        expected[:, ids[0]] = memory[:, ids[1]]
        assert torch.equal(pages, expected)


def test_kernels_whose_blocks_do_not_divide_the_schedulers_are_refused(client):
    blocks = torch.zeros(12, BLOCK_BYTES // 4)
    worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), 8)
    with pytest.raises(ValueError, match=r"'layer\.0' has 12 blocks; 8 or a multiple"):
        worker.register({f"layer.{n}": blocks for n in range(LAYERS)}, BLOCK_TOKENS)


def test_a_format_tells_element_types_and_shapes_apart():
    formats = {
        format_of(torch.zeros(shape, dtype=dtype))
        for shape in ((2, 4, 8), (2, 8, 4))
        for dtype in (torch.float32, torch.bfloat16)
    }
    assert len(formats) == 4


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float8_e4m3fn])
def test_quantized_kv_must_state_its_format(dtype):
    with pytest.raises(ValueError, match="pando_page_format"):
        format_of(torch.zeros((2, 4), dtype=dtype))
