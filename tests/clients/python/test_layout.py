"""Strides and fingerprints of layouts, which client and pandod compute alike."""

import hashlib
from dataclasses import fields

import pytest
from pando_kv import (
    CacheCounters,
    DType,
    Flush,
    KvLayout,
    LayoutOrder,
    PageStates,
    PandoError,
    Stats,
)
from pando_kv._proto.pando.v1 import admin_pb2, types_pb2

SHAPE = dict(
    capacity_pages=10,
    layers=3,
    heads=2,
    head_size=8,
    dtype=DType.FLOAT16,
    page_tokens=4,
)


def test_layer_first_strides():
    layout = KvLayout.make(**SHAPE)
    assert layout.head_stride == 16
    assert layout.token_stride == 32
    assert layout.page_stride == 128
    assert layout.kv_stride == 1280
    assert layout.layer_stride == 2560


def test_page_first_strides():
    layout = KvLayout.make(**SHAPE, order=LayoutOrder.PAGE_FIRST)
    assert layout.kv_stride == 128
    assert layout.layer_stride == 256
    assert layout.page_stride == 768


def test_opaque_pages_have_a_place_and_nothing_inside():
    layout = KvLayout.opaque(
        capacity_pages=10, layers=3, page_bytes=3 * 100, page_tokens=4
    )
    assert (layout.page_stride, layout.layer_stride) == (100, 1000)
    assert (layout.kv_planes, layout.heads, layout.token_stride) == (1, 0, 0)
    page_first = KvLayout.opaque(
        capacity_pages=10,
        layers=3,
        page_bytes=3 * 100,
        page_tokens=4,
        order="page_first",
    )
    assert (page_first.page_stride, page_first.layer_stride) == (300, 100)


def test_a_page_format_is_part_of_the_fingerprint():
    plain = KvLayout.make(**SHAPE)
    nhd = KvLayout.make(**SHAPE, page_format="nhd")
    hnd = KvLayout.make(**SHAPE, page_format="hnd")
    assert len({layout.fingerprint("a") for layout in (plain, nhd, hnd)}) == 3


def test_fingerprint_is_the_start_of_the_sha256_of_the_canonical_text():
    text = (
        "pando-kv-layout-v1;layers=3;kv_planes=1;heads=2;head_size=8;"
        "dtype=float8_e4m3;page_tokens=4;order=layer_first;layer_stride=640;"
        "page_stride=64;kv_stride=640;token_stride=16;head_stride=8;model=llama"
    )
    layout = KvLayout.make(**{**SHAPE, "dtype": DType.FLOAT8_E4M3}, kv_planes=1)
    digest = hashlib.sha256(text.encode()).digest()
    assert layout.fingerprint("llama") == int.from_bytes(digest[:8], "little")


def test_fingerprint_differs_when_layout_or_model_differ():
    layout = KvLayout.make(**SHAPE)
    other_dtype = KvLayout.make(**{**SHAPE, "dtype": DType.BFLOAT16})
    assert layout.fingerprint("a") != layout.fingerprint("b")
    assert layout.fingerprint("a") != other_dtype.fingerprint("a")


def test_every_dtype_and_order_of_the_wire_is_known():
    for enum, wire, prefix in [
        (DType, types_pb2.DType, "DTYPE_"),
        (LayoutOrder, types_pb2.LayoutOrder, "LAYOUT_ORDER_"),
    ]:
        names = {prefix + member.name for member in enum}
        assert names | {prefix + "UNSPECIFIED"} == set(wire.DESCRIPTOR.values_by_name)


def test_a_layout_from_the_wire_equals_the_one_made_here():
    layout = KvLayout.make(**SHAPE)
    message = types_pb2.KvLayout(
        layers=3,
        kv_planes=2,
        heads=2,
        head_size=8,
        dtype=types_pb2.DTYPE_FLOAT16,
        page_tokens=4,
        order=types_pb2.LAYOUT_ORDER_LAYER_FIRST,
        layer_stride=2560,
        page_stride=128,
        kv_stride=1280,
        token_stride=32,
        head_stride=16,
    )
    assert KvLayout.from_message(message) == layout


def test_an_unknown_dtype_is_named():
    with pytest.raises(PandoError, match="dtype is 99"):
        KvLayout.from_message(types_pb2.KvLayout(dtype=99))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (PageStates, admin_pb2.PageStates),
        (CacheCounters, admin_pb2.CacheCounters),
        (Stats, admin_pb2.GetStatsResponse),
        (Flush, admin_pb2.FlushResponse),
    ],
)
def test_results_have_every_field_of_their_message(result, message):
    names = [field.name for field in fields(result)]
    assert names == [field.name for field in message.DESCRIPTOR.fields]
