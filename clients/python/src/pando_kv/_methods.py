"""The methods that requests are made of: their messages, and their way.

All is read from the protocol itself: a method that it has in a batch takes one line
here, and a field that is added there is known here. A request is a named tuple of the
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

# Room for an error, or for an answer without lists; and for what a list of page ids,
# places or scores adds for each of them. Without the native module there are no lanes.
SMALL_ANSWER: int = native.SMALL_ANSWER_BYTES if native else 0
PAGE_BYTES: int = native.PAGE_ANSWER_BYTES if native else 0
SCORE_BYTES: int = native.SCORE_ANSWER_BYTES if native else 0
_MOST_PAGES = 2**32


def answer_bytes(pages: int) -> int:
    """Room for an answer with so many pages; a request for more than there can be is
    refused before it needs the room."""
    return SMALL_ANSWER + PAGE_BYTES * min(max(0, pages), _MOST_PAGES)


@dataclass(frozen=True, eq=False)
class Method:
    """One method of the protocol."""

    path: str
    """As gRPC names it."""
    request: Codec = RAW
    response: Codec = RAW
    number: int = 0
    """On a lane and in a batch; 0: it goes over gRPC, by itself."""


def plain(path: str) -> Method:
    """A method whose calls bring and take serialized messages."""
    return Method(path)


def _method(name: str) -> tuple[Method, Any]:
    """A method of lanes and batches, and the type of its requests."""
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
    """A type of tuples; a field that is not given is not set."""
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
