"""The asyncio client: the calls of `pando_kv.Client`, awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import grpc

from pando_kv import _calls
from pando_kv._channel import CHANNEL_OPTIONS, CLOSE_TIMEOUT, target_of
from pando_kv._locks import LockHandle
from pando_kv._session import OPEN_METHOD, Session, SessionTracker
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError, UnavailableError, from_rpc_error
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.pool import MappedPool
from pando_kv.results import Flush, Insert, Match, Namespace, Stats

T = TypeVar("T")


class AsyncClient:
    """One worker's session with pandod, for the tasks of one event loop.

    `async with AsyncClient(address) as client:` opens the session, and a task keeps
    it alive: it resumes it when the connection breaks and opens a new one when the
    server no longer knows it, for example after a restart. `on_session_lost` is then
    called in the event loop, before there is a new session. No call waits longer
    than `timeout` seconds. Locks and pages that a call brings when the task that
    awaited it was cancelled are given back.
    """

    def __init__(
        self,
        address: str,
        *,
        name: str = "",
        timeout: float = 5.0,
        on_session_lost: Callable[[Session], None] | None = None,
    ) -> None:
        """For "unix:/path", "/path" or "host:port"; made in the event loop."""
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = _Connection(address, self._sessions, timeout)
        self._make_lock = partial(AsyncLock, self._connection)

    async def connect(self) -> None:
        """Opens the session; `async with` does it.

        Raises UnavailableError if there is no answer within `timeout` seconds.
        """
        try:
            await self._connection.open()
        except BaseException:
            await self.close()
            raise

    @property
    def session_id(self) -> int:
        return self._sessions.current().session_id

    @property
    def epoch(self) -> int:
        """Random id of the server's boot."""
        return self._sessions.current().epoch

    @property
    def generation(self) -> int:
        """Counts the sessions of this client, from 1."""
        return self._sessions.generation

    @property
    def pool(self) -> PoolDescription:
        """The pool as described when the session was opened."""
        return self._sessions.current().pool

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down: finish what runs, admit nothing new."""
        return self._sessions.draining

    async def match_prefix(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        max_tokens: int | None = None,
        lock: bool = False,
        reserve_tokens: int = 0,
        touch: bool = True,
    ) -> Match[AsyncLock]:
        """Finds the longest cached prefix, in whole pages.

        `max_tokens` caps the match (None: no cap, 0: no match); `lock` locks what
        matched; `reserve_tokens` reserves the pages that the match did not give, for
        that many tokens counted from the start of the prompt, and is refused without
        `lock`. All in one atomic step.
        """
        call = _calls.match_prefix(
            self._sessions,
            self._make_lock,
            tokens,
            namespace=namespace,
            max_tokens=max_tokens,
            lock=lock,
            reserve_tokens=reserve_tokens,
            touch=touch,
        )
        if lock:
            return await self._connection.take(call, self._give_back)
        return await self._connection.send(call)

    async def insert(
        self,
        tokens: Any,
        page_ids: Any,
        *,
        namespace: Namespace | None = None,
        lock: AsyncLock | None = None,
        relock: bool = False,
        unlock: bool = False,
        keep_duplicates: bool = False,
        free_page_ids: Any = (),
        generation: int | None = None,
        prompt_tokens: int = 0,
    ) -> Insert:
        """Publishes pages whose KV is complete, one for each whole page of tokens.

        With `lock`, tokens begin at the end of what it protects, in its namespace;
        `relock` then moves it to the end of what was inserted, `unlock` releases it.
        The server still has the prompt of a match with `reserve_tokens`: the first
        `prompt_tokens` tokens after the end of its lock need not be sent again, and
        `tokens`, which may be empty, are those that follow them.
        `free_page_ids` are reserved pages to free in the same step. `generation`
        guards page ids used without a lock: those of a session that is over are
        refused.
        """
        return await self._connection.send(
            _calls.insert(
                self._sessions,
                tokens,
                page_ids,
                namespace=namespace,
                lock=lock,
                relock=relock,
                unlock=unlock,
                keep_duplicates=keep_duplicates,
                free_page_ids=free_page_ids,
                generation=generation,
                prompt_tokens=prompt_tokens,
            )
        )

    async def lock(
        self, tokens: Any, *, namespace: Namespace | None = None
    ) -> AsyncLock:
        """Locks the longest cached prefix of the tokens."""
        return await self._connection.take(
            _calls.lock(self._sessions, self._make_lock, tokens, namespace=namespace),
            AsyncLock.release,
        )

    async def unlock(self, *locks: AsyncLock) -> None:
        """Releases locks, all or none; those released already are left out."""
        await self._connection.unlock(*locks)

    async def evict(self, pages: int) -> int:
        """Evicts up to that many pages; returns how many."""
        return await self._connection.send(_calls.evict(pages))

    async def allocate_pages(self, pages: int) -> Uint32Array:
        """Reserves pages for the session, evicting as needed; all or nothing."""
        return await self._connection.take(
            _calls.allocate_pages(self._sessions, pages),
            partial(self.free_pages, generation=self.generation),
        )

    async def free_pages(self, page_ids: Any, *, generation: int | None = None) -> None:
        """Gives reserved pages back, all or none."""
        await self._connection.send(
            _calls.free_pages(self._sessions, page_ids, generation=generation)
        )

    async def describe_pool(self) -> PoolDescription:
        return await self._connection.send(_calls.describe_pool())

    async def attach_pool(
        self, *, expected_layout: KvLayout | None = None, model: str | None = None
    ) -> MappedPool:
        """Maps the pool. What is given must agree with the server, or it refuses.

        What is not given is taken from the server.
        """
        grant = await self._connection.send(
            _calls.attach_pool(
                self._sessions, expected_layout=expected_layout, model=model
            )
        )
        return await asyncio.to_thread(
            MappedPool.attach,
            grant.session.pool,
            grant.session.epoch,
            grant.memory_socket,
            grant.token,
            self._connection.timeout,
        )

    async def stats(self) -> Stats:
        return await self._connection.send(_calls.stats())

    async def flush(self) -> Flush:
        """Evicts everything that is not locked."""
        return await self._connection.send(_calls.flush())

    async def check_invariants(self) -> list[str]:
        """What is wrong with the server's index; empty when nothing is."""
        return await self._connection.send(_calls.check_invariants())

    async def close(self) -> None:
        """Ends the session: the server releases its locks and takes its pages back."""
        await self._connection.close()

    async def _give_back(self, match: Match[AsyncLock]) -> None:
        await self.insert(
            [], [], lock=match.lock, unlock=True, free_page_ids=match.reserved_page_ids
        )

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncLock(LockHandle):
    """A lock of the asyncio client, released on leaving its `async with` block."""

    def __init__(
        self, connection: _Connection, session: Session, lock_id: int, tokens: int
    ) -> None:
        super().__init__(connection.sessions, session, lock_id, tokens)
        self._connection = connection

    async def release(self) -> None:
        """Does nothing if the lock was released already."""
        await self._connection.unlock(self)

    async def __aenter__(self) -> AsyncLock:
        return self

    async def __aexit__(
        self, kind: object, error: BaseException | None, _: object
    ) -> None:
        try:
            await self.release()
        except PandoError:
            # The error of the block is the one to tell.
            if error is None:
                raise


class _Connection:
    """The channel and the task that keeps the session alive."""

    def __init__(self, address: str, sessions: SessionTracker, timeout: float) -> None:
        self.sessions = sessions
        self.timeout = timeout
        asyncio.get_running_loop()  # or an error here, rather than a hang later
        self._channel = grpc.aio.insecure_channel(
            target_of(address), options=CHANNEL_OPTIONS
        )
        self._methods: dict[str, Any] = {}
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Calls whose caller was cancelled; an event loop alone does not keep tasks.
        self._abandoned: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self.sessions.require_open()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_session(), name="pando-session")
        first = asyncio.wrap_future(self.sessions.first)
        try:
            await asyncio.wait_for(asyncio.shield(first), self.timeout)
        except asyncio.TimeoutError:
            raise self.sessions.not_opened(self.timeout) from None

    async def send(self, call: _calls.Call[T]) -> T:
        with call.sending(self.sessions):
            method = self._methods.get(call.method)
            if method is None:
                method = self._methods[call.method] = self._channel.unary_unary(
                    call.method
                )
            response = await method(call.request, timeout=self.timeout)
        return call.parse(response)

    async def take(
        self, call: _calls.Call[T], give_back: Callable[[T], Awaitable[None]]
    ) -> T:
        """Sends a call that brings locks or pages.

        It runs to its end even if its caller is cancelled: the server may have
        carried it out already, and only the answer says what to give back.
        """
        taking = asyncio.create_task(self.send(call))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            task = asyncio.create_task(self._abandon(taking, give_back))
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)
            raise

    async def _abandon(
        self, taking: asyncio.Task[T], give_back: Callable[[T], Awaitable[None]]
    ) -> None:
        # After an error, what the server still holds goes with the session.
        with contextlib.suppress(PandoError):
            await give_back(await taking)

    async def unlock(self, *locks: AsyncLock) -> None:
        call = _calls.unlock(self.sessions, locks)
        if call is not None:
            await self.send(call)

    async def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT)
            self._task.cancel()
        # Ends all calls; what the abandoned ones brought went with the session.
        await self._channel.close()
        await asyncio.gather(*self._abandoned, return_exceptions=True)

    async def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            try:
                async for event in open_stream(self._requests()):
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
