"""The connection of the asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
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
    """The channel and the task that keeps the session alive."""

    def __init__(
        self, access: Access, sessions: SessionTracker, timeout: float
    ) -> None:
        self.sessions = sessions
        self.timeout = timeout
        asyncio.get_running_loop()  # or an error here, rather than a hang later
        self._channel = access.channel(grpc.aio)
        self._metadata = access.metadata
        self._methods: dict[str, Any] = {}
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Calls without an answer; an event loop alone does not keep tasks.
        self._unsettled: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self.sessions.require_open()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_session(), name="pando-session")
        first = asyncio.wrap_future(self.sessions.first)
        try:
            await asyncio.wait_for(asyncio.shield(first), self.timeout)
        except asyncio.TimeoutError:
            raise self.sessions.not_opened(self.timeout) from None

    async def send(self, call: Call[T]) -> T:
        """The answer of a call.

        What a call may have brought when it ends without an answer, or when its caller
        is cancelled, is given back by a task of its own. The call runs to its end even
        then: the server may have carried it out, and only the answer says what to give
        back.
        """
        if call.give_back is None:
            return await self._attempt(call)
        taking = asyncio.create_task(self._attempt(call))
        try:
            return await asyncio.shield(taking)
        except BaseException as error:
            if is_unsettled(error):
                task = asyncio.create_task(self._settle(taking, call, call.give_back))
                self._unsettled.add(task)
                task.add_done_callback(self._unsettled.discard)
            raise

    async def unlock(self, *locks: LockHandle) -> None:
        call = _prefix_calls.unlock(self.sessions, locks)
        if call is not None:
            await self.send(call)

    def stream(self, method: str, request: bytes, timeout: float | None = None) -> Any:
        """The messages of an answer of many; cancel() ends it."""
        self.sessions.require_open()
        return self._channel.unary_stream(method)(
            request, timeout=timeout, metadata=self._metadata
        )

    async def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT)
            self._task.cancel()
        # Ends all calls; what they brought went with the session.
        await self._channel.close()
        await asyncio.gather(*self._unsettled, return_exceptions=True)

    def _method(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = self._channel.unary_unary(name)
        return method

    async def _attempt(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.sessions, self.timeout)
        with attempts.sending():
            while True:
                request, timeout = attempts.next()
                try:
                    method = self._method(attempts.method)
                    response = await method(
                        request, timeout=timeout, metadata=self._metadata
                    )
                    break
                except grpc.RpcError as error:
                    await asyncio.sleep(attempts.pause_after(error))
        return attempts.parse(response)

    async def _settle(
        self,
        taking: asyncio.Task[T],
        call: Call[T],
        give_back: Callable[[T], Call[Any]],
    ) -> None:
        """Repeats a call until the server says what it brought. At the end of the
        session there is nothing left of it."""
        waits = call.pending_wait > 0
        call = replace(call, pending_wait=0.0)
        answer: Awaitable[T] = taking
        if waits and not taking.done():
            # Nobody wants what it waits for. It may have been carried out meanwhile.
            taking.cancel()
            await asyncio.wait([taking])
            if taking.cancelled():
                answer = self._attempt(call)
        while True:
            try:
                await self._attempt(give_back(await answer))
                return
            except PandoError as error:
                if not is_unsettled(error):
                    return
            await self._pause(SETTLE_PAUSE)
            answer = self._attempt(call)

    async def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            try:
                async for event in open_stream(
                    self._requests(), metadata=self._metadata
                ):
                    self.sessions.handle(event)
                error: PandoError = UnavailableError("SESSION_ENDED", "server ended it")
            except grpc.RpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            except PandoError as unusable:
                error = unusable
            await self._pause(self.sessions.broken(error))

    async def _requests(self) -> AsyncIterator[bytes]:
        """Opens the session; ends, and so half-closes the stream, with close()."""
        yield self.sessions.open_request()
        await self._closing.wait()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
