"""The mapped pool as torch tensors over host memory; skipped without torch."""

import os

import numpy as np
import pytest
from pando_kv import (
    DType,
    KvLayout,
    LayoutOrder,
    MappedPool,
    PandoError,
    PoolDescription,
    Shard,
)

PAGES, LAYERS, PAGE_TOKENS, HEADS, HEAD_SIZE = 5, 3, 4, 2, 8


def map_pool(dtype=DType.FLOAT32, order=LayoutOrder.LAYER_FIRST, device="host"):
    layout = KvLayout.make(
        capacity_pages=PAGES,
        layers=LAYERS,
        heads=HEADS,
        head_size=HEAD_SIZE,
        dtype=dtype,
        page_tokens=PAGE_TOKENS,
        order=order,
    )
    page_bytes = LAYERS * 2 * PAGE_TOKENS * layout.token_stride
    size = -(-PAGES * page_bytes // 4096) * 4096
    description = PoolDescription(
        capacity_pages=PAGES,
        layout=layout,
        shards=(Shard(0, device, size),),
        model="",
        fingerprint=layout.fingerprint(""),
        page_bytes=page_bytes,
    )
    fd = os.memfd_create("pando-test")
    os.ftruncate(fd, size)
    return MappedPool(description, epoch=1, memory=[(fd, size)])


# Opaque pages have no keys and values, because only workers know their format.
@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype != DType.OPAQUE])
@pytest.mark.parametrize("order", LayoutOrder)
def test_tensors_are_the_memory_that_numpy_shows(dtype, order):
    torch = pytest.importorskip("torch")
    pool = map_pool(dtype, order)
    tensors = pool.torch()
    for layer in range(LAYERS):
        for plane, numpy_view, tensor in (
            (0, pool.keys(layer), tensors.keys(layer)),
            (1, pool.values(layer), tensors.values(layer)),
        ):
            numpy_view[...] = np.arange(numpy_view.size).reshape(numpy_view.shape) % 97
            numpy_view[0, 0, 0, 0] = 2 * layer + plane
            element = torch.from_numpy(np.ascontiguousarray(numpy_view))
            assert tensor.shape == numpy_view.shape
            assert str(tensor.dtype).startswith(f"torch.{dtype.value}")
            bits = tensor.contiguous().view(element.dtype)
            assert torch.equal(bits, element)
    del numpy_view, tensor, tensors, element, bits
    pool.close()


def test_what_a_tensor_writes_numpy_reads():
    pytest.importorskip("torch")
    pool = map_pool()
    slots = pool.torch().value_slots(2)
    assert slots.shape == (PAGES * PAGE_TOKENS, HEADS, HEAD_SIZE)
    slots[PAGE_TOKENS + 1] = 7.0
    assert (pool.values(2)[1, 1] == 7.0).all()
    del slots
    pool.close()


def test_a_closed_pool_shows_no_tensors():
    pool = map_pool()
    pool.close()
    with pytest.raises(ValueError, match="the pool is closed"):
        pool.torch()


def test_a_gpu_that_is_not_there_is_an_error_that_says_so():
    device = "cuda:00000000-0000-0000-0000-000000000000"
    with pytest.raises(
        PandoError, match=r"CUDA: (no CUDA driver|.*none of the|cuInit)"
    ):
        map_pool(device=device)


def test_memory_of_an_unknown_kind_is_refused():
    with pytest.raises(PandoError, match="'tape', which this client does not know"):
        map_pool(device="tape")
