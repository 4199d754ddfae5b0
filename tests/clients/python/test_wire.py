"""Requests and responses in the same bytes that protobuf itself writes and reads."""

import array

import numpy as np
import pytest
from pando_kv._proto.pando.v1 import prefix_cache_pb2 as pb
from pando_kv._wire import as_uint32, decode, encode

TOKENS = [1, 0, 2**32 - 1, 77]


@pytest.mark.parametrize("count", [0, 1, 31, 32, 5000])
def test_encoded_lists_parse_like_protobufs_own(count):
    tokens = np.arange(count, dtype=np.uint32) * 3
    request = pb.InsertRequest(session_id=5, lock_id=6)
    lists = {
        pb.InsertRequest.TOKENS_FIELD_NUMBER: tokens,
        pb.InsertRequest.PAGE_IDS_FIELD_NUMBER: tokens[: count // 2],
    }

    data = encode(request, lists)

    expected = pb.InsertRequest(
        session_id=5, lock_id=6, tokens=tokens, page_ids=tokens[: count // 2]
    )
    assert pb.InsertRequest.FromString(data) == expected
    assert len(data) == expected.ByteSize()


@pytest.mark.parametrize("count", [0, 1, 31, 32, 5000])
def test_decoded_lists_equal_protobufs_own(count):
    page_ids = np.arange(count, dtype=np.uint32)
    response = pb.MatchPrefixResponse(
        matched_tokens=16 * count,
        page_ids=page_ids,
        lock_id=2**63 + 1,
        reserved_page_ids=TOKENS,
    )

    rest, (got_page_ids, got_reserved) = decode(
        pb.MatchPrefixResponse, response.SerializeToString(), 2, 4
    )

    assert got_page_ids.dtype == np.uint32
    assert got_page_ids.tolist() == page_ids.tolist()
    assert got_reserved.tolist() == TOKENS
    assert (rest.matched_tokens, rest.lock_id) == (16 * count, 2**63 + 1)
    assert not rest.page_ids


def test_decoded_lists_are_writable():
    response = pb.MatchPrefixResponse(matched_tokens=1, page_ids=[1, 2])
    _, (page_ids,) = decode(pb.MatchPrefixResponse, response.SerializeToString(), 2)
    page_ids[0] = 9
    assert page_ids.tolist() == [9, 2]


def test_lists_split_over_several_chunks_are_joined():
    first = pb.MatchPrefixResponse(page_ids=[1, 2])
    second = pb.MatchPrefixResponse(page_ids=[3])
    data = first.SerializeToString() + second.SerializeToString()
    _, (page_ids,) = decode(pb.MatchPrefixResponse, data, 2)
    assert page_ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "values",
    [
        TOKENS,
        tuple(TOKENS),
        array.array("I", TOKENS),
        memoryview(array.array("I", TOKENS)),
        np.array(TOKENS, np.uint32),
        np.array(TOKENS, np.int64),
        np.array(TOKENS, np.uint64),
        np.array(TOKENS, ">u4"),
        np.repeat(np.array(TOKENS, np.uint32), 2)[::2],
    ],
    ids=lambda values: type(values).__name__,
)
def test_every_kind_of_integer_list_is_accepted(values):
    assert as_uint32(values, "tokens").tolist() == TOKENS


def test_int32_arrays_are_accepted():
    assert as_uint32(np.array([0, 2**31 - 1], np.int32), "tokens").tolist() == [
        0,
        2**31 - 1,
    ]


@pytest.mark.parametrize(
    "buffer", [np.arange(8, dtype=np.uint32), array.array("I", range(8))]
)
def test_uint32_buffers_are_not_copied(buffer):
    assert np.shares_memory(as_uint32(buffer, "tokens"), np.asarray(buffer))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([5, -1], r"tokens\[1\] is -1; must be from 0 to 4294967295"),
        ([2**32], r"tokens\[0\] is 4294967296"),
        ([2**63], r"tokens\[0\] is 9223372036854775808"),
        ([1, 2**64], r"tokens\[1\] is 18446744073709551616"),
        (np.array([3, -7], np.int32), r"tokens\[1\] is -7"),
        ([1.0], "holds float64; must hold integers"),
        ([True], "holds bool; must hold integers"),
        (["a"], "must hold integers"),
        (b"abcd", "must have 1"),
        ([[1, 2]], "has 2 dimensions; must have 1"),
        (3, "has 0 dimensions; must have 1"),
    ],
)
def test_what_is_no_list_of_uint32_is_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        as_uint32(values, "tokens")
