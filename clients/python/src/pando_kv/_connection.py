"""The connection of the synchronous client."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Any, TypeVar

import grpc

from pando_kv import _prefix_calls
from pando_kv._call import Attempts, Call, is_unsettled
from pando_kv._channel import CLOSE_TIMEOUT, SETTLE_PAUSE, Access
from pando_kv._locks import LockHandle
from pando_kv._session import OPEN_METHOD, SessionTracker
from pando_kv.errors import PandoError, UnavailableError, from_rpc_error

T = TypeVar("T")


class Connection:
    """The channel, and the thread that keeps the session alive once there is one."""

    def __init__(
        self, access: Access, sessions: SessionTracker, timeout: float
    ) -> None:
        self.sessions = sessions
        self.timeout = timeout
        self._channel = access.channel(grpc)
        self._metadata = access.metadata
        self._methods: dict[str, Any] = {}
        self._closing = threading.Event()
        # Requests of the current stream; None half-closes it.
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._keep_session, name="pando-session", daemon=True
        )

    def open(self) -> None:
        self._thread.start()
        try:
            self.sessions.first.result(self.timeout)
        except FutureTimeoutError:
            raise self.sessions.not_opened(self.timeout) from None

    def send(self, call: Call[T]) -> T:
        """The answer of a call.

        What a call may have brought when it ends without an answer is given back, by
        a thread of its own.
        """
        try:
            return self._attempt(call)
        except BaseException as error:
            if call.give_back and is_unsettled(error):
                threading.Thread(
                    target=self._settle, args=(call, call.give_back), daemon=True
                ).start()
            raise

    def unlock(self, *locks: LockHandle) -> None:
        call = _prefix_calls.unlock(self.sessions, locks)
        if call is not None:
            self.send(call)

    def _attempt(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.sessions, self.timeout)
        with attempts.sending():
            while True:
                request, timeout = attempts.next()
                try:
                    response = self._method(attempts.method)(
                        request, timeout=timeout, metadata=self._metadata
                    )
                    break
                except grpc.RpcError as error:
                    time.sleep(attempts.pause_after(error))
        return attempts.parse(response)

    def stream(
        self, method: str, request: bytes, timeout: float | None = None
    ) -> Iterator[bytes]:
        """The messages of an answer of many; cancel() ends it."""
        self.sessions.require_open()
        messages: Iterator[bytes] = self._channel.unary_stream(method)(
            request, timeout=timeout, metadata=self._metadata
        )
        return messages

    def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        self._requests.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT)
        self._channel.close()

    def _method(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = self._channel.unary_unary(name)
        return method

    def _settle(self, call: Call[T], give_back: Callable[[T], Call[Any]]) -> None:
        """Repeats a call until the server says what it brought. At the end of the
        session there is nothing left of it."""
        call = replace(call, pending_wait=0.0)
        while call.repeats_in and self.sessions.is_current(call.repeats_in):
            try:
                self._attempt(give_back(self._attempt(call)))
                return
            except PandoError as error:
                if not is_unsettled(error) or self._closing.wait(SETTLE_PAUSE):
                    return

    def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            self._requests = requests
            requests.put(self.sessions.open_request())
            # Also when close() came between the check above and the new queue.
            if self._closing.is_set():
                requests.put(None)
            try:
                for event in open_stream(
                    iter(requests.get, None), metadata=self._metadata
                ):
                    self.sessions.handle(event)
                error: PandoError = UnavailableError("SESSION_ENDED", "server ended it")
            except grpc.RpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            except PandoError as unusable:
                error = unusable
            requests.put(None)
            self._closing.wait(self.sessions.broken(error))
