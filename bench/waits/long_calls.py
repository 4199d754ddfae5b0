"""Makes calls at their largest legal size, and fills the cache for them."""

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
    """A worker's calls over gRPC, made with plain messages, because the Python client
    would spend most of the time on its own work. `client` owns the session."""

    def __init__(self, address: str, client: Client) -> None:
        self.address = address
        self.session = client.session_id
        self._channel = grpc.insecure_channel(
            address, [("grpc.max_receive_message_length", -1)]
        )

    def close(self) -> None:
        self._channel.close()

    def call(self, method: str, request: Message) -> Any:
        """Calls a method, for example "PrefixCache/Insert", and returns its answer."""
        send = self._channel.unary_unary(
            f"/pando.v1.{method}",
            type(request).SerializeToString,
            response_type(request).FromString,
        )
        return send(request, timeout=300)

    def stream(self, method: str, request: Message) -> Any:
        """Calls a method that streams, and returns an iterator over its answers."""
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
        """Allocates pages for the given session, or for the caller's own; returns their
        ids."""
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
        """Fills an empty cache with LEAVES leaves of one page, spread over the
        namespaces."""
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
        """Inserts a path of DEPTH pages of a token each, locks the path at each depth,
        and returns the ids of the locks."""
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
    """Returns the response class of a request, for example InsertResponse for an
    InsertRequest."""
    message = request.DESCRIPTOR
    name = message.name.removesuffix("Request") + "Response"
    return GetMessageClass(message.file.message_types_by_name[name])
