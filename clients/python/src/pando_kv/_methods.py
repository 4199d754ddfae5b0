"""The methods of pandod's protocol that requests use, with their codecs and numbers.

Everything is read from the protocol itself: a method that batches carry takes one line
here, and a new field of its messages takes none. A request is a named tuple of the
fields of its message.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from pando_kv._codec import RAW, Codec, fields_of, make_codec, type_of
from pando_kv._native_module import native
from pando_kv._proto.pando.v1 import data_path_pb2

# The bytes of an error or of an answer without lists, and the bytes that a list of page
# ids, places or scores adds for each entry. Only lanes need these numbers, and lanes
# need the native module.
SMALL_ANSWER: int = native.SMALL_ANSWER_BYTES if native else 0
PAGE_BYTES: int = native.PAGE_ANSWER_BYTES if native else 0
SCORE_BYTES: int = native.SCORE_ANSWER_BYTES if native else 0
_MOST_PAGES = 2**32


def answer_bytes(pages: int) -> int:
    """Returns the room in bytes for an answer with this many pages. The number is
    capped, because pandod refuses a larger request and needs no room for its answer."""
    return SMALL_ANSWER + PAGE_BYTES * min(max(0, pages), _MOST_PAGES)


@dataclass(frozen=True, eq=False)
class Method:
    """One method of the protocol. Immutable, so any thread may read it."""

    path: str
    """The name of the method for gRPC."""
    request: Codec = RAW
    response: Codec = RAW
    number: int = 0
    """The number of the method on a lane and in a batch; 0 if only gRPC carries it, by
    itself."""


def plain(path: str) -> Method:
    """Returns a method whose calls give and take serialized messages."""
    return Method(path)


def _method(name: str) -> tuple[Method, Any]:
    """Returns a method that lanes and batches carry, and the type of its requests."""
    field = _FIELD_OF[f"{name}Request"]
    method = _taking(field.message_type)
    request = type_of(method.input_type)
    return Method(
        f"/{method.containing_service.full_name}/{name}",
        make_codec(request),
        make_codec(type_of(method.output_type)),
        field.number,
    ), _request(request)


def _taking(message: Any) -> MethodDescriptor:
    for service in message.file.services_by_name.values():
        for method in service.methods:
            if method.input_type is message:
                return method
    raise LookupError(f"no method takes {message.name}")


def _request(message_type: type[Message]) -> Any:
    """Returns a named tuple type of the message's fields, which are None by default."""
    names = [field.name for field in fields_of(message_type)]
    return namedtuple(message_type.DESCRIPTOR.name, names, defaults=[None] * len(names))


_FIELD_OF = {
    field.message_type.name: field
    for field in data_path_pb2.BatchedRequest.DESCRIPTOR.fields
}

MATCH_PREFIX, MatchPrefixRequest = _method("MatchPrefix")
MATCH_PREFIXES, MatchPrefixesRequest = _method("MatchPrefixes")
INSERT, InsertRequest = _method("Insert")
LOCK, LockRequest = _method("Lock")
UNLOCK, UnlockRequest = _method("Unlock")
ALLOCATE_PAGES, AllocatePagesRequest = _method("AllocatePages")
FREE_PAGES, FreePagesRequest = _method("FreePages")
LOOKUP_BLOCKS, LookupBlocksRequest = _method("LookupBlocks")
ACQUIRE_BLOCKS, AcquireBlocksRequest = _method("AcquireBlocks")
RESERVE_BLOCKS, ReserveBlocksRequest = _method("ReserveBlocks")
PUBLISH_BLOCKS, PublishBlocksRequest = _method("PublishBlocks")
DISCARD_BLOCKS, DiscardBlocksRequest = _method("DiscardBlocks")
RELEASE_BLOCKS, ReleaseBlocksRequest = _method("ReleaseBlocks")
RESET_KINDS, ResetKindsRequest = _method("ResetKinds")
