"""Calls without the client library, which would refuse some of them itself."""

import contextlib
import queue
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.message import Message
from pando_kv._proto.pando.v1 import session_pb2
from pando_kv.errors import from_rpc_error

_LIMIT_SECONDS = 30


class RunningCall:
    """A call whose answer may not be there yet."""

    def __init__(self, future: grpc.Future) -> None:
        self._future = future

    def answer(self) -> bytes:
        return self._future.result()

    def failure(self) -> tuple[str, str]:
        """Returns the gRPC code and the reason, or the code twice without a reason."""
        error = self._future.exception()
        assert isinstance(error, grpc.RpcError), "the call succeeded"
        return error.code().name, from_rpc_error(error).reason

    def has_failed(self) -> bool:
        return self._future.exception() is not None

    def is_done(self) -> bool:
        return self._future.done()

    def cancel(self) -> None:
        self._future.cancel()


class RunningStream:
    """An open stream in both directions, to which a test sends messages one by one."""

    def __init__(self, method: grpc.StreamStreamMultiCallable, metadata: Any) -> None:
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers = method(
            iter(self._requests.get, None), timeout=_LIMIT_SECONDS, metadata=metadata
        )

    def send(self, request: Message | bytes) -> None:
        self._requests.put(_bytes_of(request))

    def half_close(self) -> None:
        self._requests.put(None)

    def next(self) -> bytes:
        return next(self._answers)

    def failure(self) -> tuple[str, str]:
        """Reads any last answers; returns the code and reason of the stream's end."""
        try:
            answers = list(self._answers)
        except grpc.RpcError as error:
            return error.code().name, from_rpc_error(error).reason
        raise AssertionError(f"the stream ended in order after {answers}")

    def close(self) -> None:
        self._answers.cancel()
        self.half_close()


class RawCalls:
    """One connection that sends any bytes to any method."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._metadata = [("authorization", f"Bearer {token}")] if token else None
        options = [
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self._channel = grpc.insecure_channel(address, options)

    def unary(self, method: str, request: Message | bytes = b"") -> bytes:
        """Returns the answer of a method, for example "pando.v1.PrefixCache/Insert"."""
        return self.start(method, request).answer()

    def failure(self, method: str, request: Message | bytes) -> tuple[str, str]:
        """Returns the gRPC code and the reason, or the code twice without a reason."""
        return self.start(method, request).failure()

    def start(self, method: str, request: Message | bytes) -> RunningCall:
        call = self._channel.unary_unary(f"/{method}")
        future = call.future(
            _bytes_of(request), timeout=_LIMIT_SECONDS, metadata=self._metadata
        )
        return RunningCall(future)

    def stream_failure(
        self, method: str, *requests: Message | bytes
    ) -> tuple[str, str]:
        """Returns the code and the reason of a stream's end after these requests."""
        call = self._channel.stream_stream(f"/{method}")
        try:
            answers = list(
                call(
                    map(_bytes_of, requests),
                    timeout=_LIMIT_SECONDS,
                    metadata=self._metadata,
                )
            )
        except grpc.RpcError as error:
            return error.code().name, from_rpc_error(error).reason
        raise AssertionError(f"{method} answered {answers}")

    def open_stream(self, method: str) -> "RunningStream":
        """Opens a stream, both of whose directions stay open."""
        return RunningStream(self._channel.stream_stream(f"/{method}"), self._metadata)

    @contextlib.contextmanager
    def session(self, resume: int = 0) -> Iterator[int]:
        """Yields the id of a session, which ends in order with the block."""
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        first = session_pb2.OpenSessionRequest(resume_session_id=resume)
        requests.put(first.SerializeToString())
        call = self._channel.stream_stream("/pando.v1.Sessions/Open")
        events = call(iter(requests.get, None), metadata=self._metadata)
        try:
            yield session_pb2.SessionEvent.FromString(next(events)).opened.session_id
        finally:
            requests.put(None)
            assert list(events) == []

    def __enter__(self) -> "RawCalls":
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()


def _bytes_of(request: Message | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()
