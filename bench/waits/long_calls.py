"""Calls at their largest legal size, and what is in the cache before them."""

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pando_kv import Client
from pando_kv._proto.pando.v1 import (
    data_path_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
    types_pb2,
)

MOST_TOKENS = 1_048_576
MOST_OF_BATCH = 256
LEAVES = 1_000_000
DEPTH = 16_384
MANY_LEAVES = f"{LEAVES:,} leaves"


class LongCalls:
    """Makes a worker's calls over gRPC, with messages as they are: the client would
    spend most of the time on them. `client` has the session."""

    def __init__(self, address: str, client: Client) -> None:
        self.address = address
        self.session = client.session_id
        self._channel = grpc.insecure_channel(
            address, [("grpc.max_receive_message_length", -1)]
        )

    def close(self) -> None:
        self._channel.close()

    def call(self, method: str, request: Message) -> Any:
        """`method` is "PrefixCache/Insert", for example."""
        send = self._channel.unary_unary(
            f"/pando.v1.{method}",
            type(request).SerializeToString,
            response_type(request).FromString,
        )
        return send(request, timeout=300)

    def stream(self, method: str, request: Message) -> Any:
        """The answers to come."""
        send = self._channel.unary_stream(
            f"/pando.v1.{method}",
            type(request).SerializeToString,
            response_type(request).FromString,
        )
        return send(request, timeout=300)

    def batch(self, requests: list[data_path_pb2.BatchedRequest]) -> list[Any]:
        answers: list[Any] = []
        for i in range(0, len(requests), MOST_OF_BATCH):
            batch = data_path_pb2.BatchRequest(requests=requests[i : i + MOST_OF_BATCH])
            answers += self.call("DataPath/Batch", batch).responses
        return answers

    def allocate(self, pages: int, session: int | None = None) -> list[int]:
        """For its own session where none is given."""
        request = pool_pb2.AllocatePagesRequest(
            session_id=session or self.session, pages=pages
        )
        return list(self.call("PagePool/AllocatePages", request).page_ids)

    def insert(self, tokens: Iterable[int], pages: Iterable[int]) -> None:
        request = prefix_cache_pb2.InsertRequest(
            session_id=self.session, tokens=tokens, page_ids=pages
        )
        self.call("PrefixCache/Insert", request)

    def end(self, session: int) -> None:
        self.call("Sessions/End", session_pb2.EndSessionRequest(session_id=session))

    def fill(self, namespaces: int = 1) -> None:
        """LEAVES leaves of a page, from nothing, in so many namespaces."""
        names = [types_pb2.Namespace(extra_key=str(n)) for n in range(1, namespaces)]
        names.insert(0, types_pb2.Namespace())
        pages = self.allocate(LEAVES)
        self.batch(
            [
                data_path_pb2.BatchedRequest(
                    insert=prefix_cache_pb2.InsertRequest(
                        session_id=self.session,
                        namespace=names[i % namespaces],
                        tokens=[MOST_TOKENS + i],
                        page_ids=[page],
                    )
                )
                for i, page in enumerate(pages)
            ]
        )

    def lock_path(self) -> list[int]:
        """A lock on each node of a path of DEPTH, which it makes."""
        self.insert(range(DEPTH), self.allocate(DEPTH))
        locks = []
        handle = None
        for token in range(DEPTH):
            request = prefix_cache_pb2.LockRequest(
                session_id=self.session, tokens=[token], after=handle
            )
            answer = self.call("PrefixCache/Lock", request)
            locks.append(answer.lock_id)
            handle = answer.handle
        return locks


def response_type(request: Message) -> type[Message]:
    """InsertResponse for an InsertRequest."""
    message = request.DESCRIPTOR
    name = message.name.removesuffix("Request") + "Response"
    return GetMessageClass(message.file.message_types_by_name[name])
