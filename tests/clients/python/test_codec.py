"""Messages as tuples: the native codec, the Python codec and Protobuf agree."""

import random

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from pando_kv import _codec, _methods
from pando_kv._codec import MessageCodec, fields_of, is_list, kind_of
from pando_kv._native_module import WHY_NOT_NATIVE, native
from pando_kv._proto.pando.v1 import (
    blocks_pb2,
    pool_pb2,
    prefix_cache_pb2,
    types_pb2,
)

MESSAGES = [
    types_pb2.Namespace,
    types_pb2.PrefixHandle,
    *(
        getattr(module, name)
        for module, methods in (
            (
                prefix_cache_pb2,
                ["MatchPrefix", "MatchPrefixes", "Insert", "Lock", "Unlock"],
            ),
            (pool_pb2, ["AllocatePages", "FreePages"]),
            (
                blocks_pb2,
                [
                    *("LookupBlocks", "AcquireBlocks", "ReserveBlocks"),
                    *("PublishBlocks", "DiscardBlocks", "ReleaseBlocks"),
                    "ResetKinds",
                ],
            ),
        )
        for method in methods
        for name in (f"{method}Request", f"{method}Response")
    ),
]
CODECS = [MessageCodec]
if native is not None:
    CODECS.append(_codec._native_codec)

by_codec = pytest.mark.parametrize("make", CODECS, ids=lambda make: make.__name__)
needs_native = pytest.mark.skipif(native is None, reason=WHY_NOT_NATIVE)


def random_value(field: FieldDescriptor, chance: random.Random) -> object:
    kind = kind_of(field)
    if not is_list(field) and chance.random() < 0.3:
        return None
    count = chance.choice([0, 1, 2, 5, 300])
    edge = chance.choice([0, 1, 127, 128, 2**31 - 1])
    return {
        "bool": lambda: chance.random() < 0.5,
        "int32": lambda: chance.choice([edge, -edge]) if field.enum_type is None else 1,
        "uint32": lambda: chance.choice([edge, 2**32 - 1]),
        "uint64": lambda: chance.choice([edge, 2**64 - 1]),
        "fixed64": lambda: chance.choice([edge, 2**64 - 1]),
        "string": lambda: chance.choice(["", "a", "ä€😀" * count]),
        "bytes": lambda: chance.randbytes(count),
        "message": lambda: random_values(field.message_type, chance),
        "messages": lambda: [
            random_values(field.message_type, chance) for _ in range(min(count, 5))
        ],
        "uint32s": lambda: np.array(
            [chance.getrandbits(32) for _ in range(count)], np.uint32
        ),
        "uint64s": lambda: [chance.getrandbits(64) for _ in range(count)],
    }[kind]()


def random_values(descriptor, chance: random.Random) -> tuple[object, ...]:
    fields = sorted(descriptor.fields, key=lambda field: field.number)
    return tuple(random_value(field, chance) for field in fields)


def plain(value: object) -> object:
    """Returns the value with lists in place of arrays, so that tests can compare it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


@needs_native
@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.DESCRIPTOR.name)
def test_both_codecs_make_the_same_message_and_read_the_same_from_it(message):
    codec = _codec._native_codec(message)
    model = MessageCodec(message)
    for seed in range(200):
        values = random_values(message.DESCRIPTOR, random.Random(seed))
        data = codec.encode(values)
        assert message.FromString(data) == message.FromString(model.encode(values)), (
            f"seed {seed}"
        )
        assert plain(codec.decode(data)) == plain(model.decode(data)), f"seed {seed}"


@by_codec
def test_what_is_left_out_of_a_tuple_is_not_set(make):
    codec = make(prefix_cache_pb2.MatchPrefixRequest)
    assert codec.encode(()) == codec.encode((None,) * 10) == b""
    with pytest.raises(ValueError, match="fewer fields"):
        codec.encode((None,) * 100)


@by_codec
def test_fields_that_are_not_known_are_passed_over(make):
    known = types_pb2.PrefixHandle(epoch=1, node=2, tokens=3).SerializeToString()
    newer = known + b"\xf8\x06\x05" + b"\xfa\x06\x03abc" + b"\xfd\x06abcd"
    newer += b"\xf9\x06abcdefgh"
    assert make(types_pb2.PrefixHandle).decode(newer) == (1, 2, 3)


@by_codec
@pytest.mark.parametrize("data", [b"\x09\x00", b"\x19", b"\xff" * 11, b"\x0a\x05a"])
def test_bytes_that_are_no_message_are_an_error(make, data):
    error = DecodeError if make is MessageCodec else ValueError
    with pytest.raises((error, IndexError)):
        make(types_pb2.PrefixHandle).decode(data)


@by_codec
@pytest.mark.parametrize("pages", [-1, 2**32, "x", 1.5])
def test_a_number_that_does_not_fit_its_field_is_an_error(make, pages):
    codec = make(pool_pb2.AllocatePagesRequest)
    with pytest.raises((ValueError, TypeError)):
        codec.encode((1, pages))


@needs_native
@pytest.mark.parametrize(
    "tokens",
    [
        np.arange(6, dtype=np.int64),
        np.arange(6, dtype=np.float32),
        np.arange(6, dtype=np.uint32)[::2],
        np.zeros((2, 2), np.uint32),
        "text",
        3,
    ],
    ids=["int64", "float32", "strided", "2d", "str", "int"],
)
def test_the_native_codec_takes_only_buffers_of_uint32(tokens):
    codec = _codec._native_codec(prefix_cache_pb2.LockRequest)
    with pytest.raises((TypeError, BufferError, ValueError)):
        codec.encode((1, None, tokens))


@needs_native
def test_lists_that_come_in_pieces_are_put_together():
    codec = _codec._native_codec(prefix_cache_pb2.MatchPrefixResponse)
    number = prefix_cache_pb2.MatchPrefixResponse.PAGE_IDS_FIELD_NUMBER
    piece = bytes([number << 3 | 2, 8]) + bytes([1, 0, 0, 0, 2, 0, 0, 0])
    page_ids = codec.decode(piece + piece)[1]
    assert page_ids.tolist() == [1, 2, 1, 2]
    assert page_ids.flags.writeable


def test_requests_have_the_fields_of_their_messages():
    for kind in (_methods.MatchPrefixRequest, _methods.InsertRequest):
        message = getattr(prefix_cache_pb2, kind.__name__)
        assert list(kind._fields) == [field.name for field in fields_of(message)]
        assert _methods.INSERT.request.encode(kind()) == b""


class AnotherNumberEachTime:
    def __init__(self, *numbers):
        self._numbers = iter(numbers)

    def __index__(self):
        return next(self._numbers)


@needs_native
def test_a_number_is_asked_for_once():
    codec = _codec._native_codec(prefix_cache_pb2.MatchPrefixRequest)
    fickle = AnotherNumberEachTime(1, 2**32 - 1)
    values = (7, None, None, fickle, True, 16)
    assert codec.decode(codec.encode(values))[3] == 1


@needs_native
def test_a_list_that_changes_while_it_is_encoded_is_sent_as_it_was():
    class Shrinks:
        def __index__(self):
            locks[1:] = [8]
            return 1

    codec = _codec._native_codec(prefix_cache_pb2.UnlockRequest)
    locks = [Shrinks(), 2, 3]
    assert list(codec.decode(codec.encode((7, locks)))[1]) == [1, 2, 3]
