"""The methods that requests are made of: their messages, and their way.

A request is a named tuple of the fields of its message, made here from the protocol
itself, so that a field that is added there is known here.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from pando_kv._codec import RAW, Codec, fields_of, make_codec
from pando_kv._proto.pando.v1 import data_path_pb2, pool_pb2, prefix_cache_pb2

# Room for an error, or for an answer without lists.
SMALL_ANSWER = 2048
# What a page id and a score take in an answer.
PAGE_BYTES = 4
SCORE_BYTES = 24


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


def _method(service: str, name: str, module: Any) -> Method:
    request_field = _FIELD_OF[f"{name}Request"]
    return Method(
        f"/pando.v1.{service}/{name}",
        make_codec(getattr(module, f"{name}Request")),
        make_codec(getattr(module, f"{name}Response")),
        request_field.number,
    )


def _request(message_type: type[Message]) -> Any:
    """A type of tuples; a field that is not given is not set."""
    names = [field.name for field in fields_of(message_type)]
    return namedtuple(message_type.DESCRIPTOR.name, names, defaults=[None] * len(names))


_FIELD_OF = {
    field.message_type.name: field
    for field in data_path_pb2.BatchedRequest.DESCRIPTOR.fields
}

MATCH_PREFIX = _method("PrefixCache", "MatchPrefix", prefix_cache_pb2)
MATCH_PREFIXES = _method("PrefixCache", "MatchPrefixes", prefix_cache_pb2)
INSERT = _method("PrefixCache", "Insert", prefix_cache_pb2)
LOCK = _method("PrefixCache", "Lock", prefix_cache_pb2)
UNLOCK = _method("PrefixCache", "Unlock", prefix_cache_pb2)
ALLOCATE_PAGES = _method("PagePool", "AllocatePages", pool_pb2)
FREE_PAGES = _method("PagePool", "FreePages", pool_pb2)

MatchPrefixRequest = _request(prefix_cache_pb2.MatchPrefixRequest)
MatchPrefixesRequest = _request(prefix_cache_pb2.MatchPrefixesRequest)
InsertRequest = _request(prefix_cache_pb2.InsertRequest)
LockRequest = _request(prefix_cache_pb2.LockRequest)
UnlockRequest = _request(prefix_cache_pb2.UnlockRequest)
AllocatePagesRequest = _request(pool_pb2.AllocatePagesRequest)
FreePagesRequest = _request(pool_pb2.FreePagesRequest)
