"""The asyncio clients: the calls of `pando_kv.Client` and `Operator`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pando_kv import _pool_calls, _prefix_calls
from pando_kv._aio_connection import Connection
from pando_kv._aio_operator_client import AsyncOperator, AsyncOperatorClient
from pando_kv._batch import CallList
from pando_kv._channel import Access
from pando_kv._locks import LockHandle
from pando_kv._memory_socket import SessionLink
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.pool import MappedPool
from pando_kv.results import (
    Gauges,
    Insert,
    Match,
    Namespace,
    PageRoom,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
)
from pando_kv.tls import Tls

__all__ = ["AsyncClient", "AsyncLock", "AsyncOperator"]


class AsyncClient(AsyncOperatorClient):
    """One worker's session with pandod, for the tasks of one event loop.

    `async with AsyncClient(address) as client:` opens the session, and a task keeps
    it alive: it resumes it when the connection breaks and opens a new one when the
    server no longer knows it, for example after a restart. `on_session_lost` is then
    called in the event loop, before there is a new session. No call waits longer
    than `timeout` seconds, its `pending_wait` not counted.

    Where the connection breaks under a call that changes something, the call is
    repeated for most of a second, and the server acts on it once. Locks and pages that
    a call brings after it ended without an answer (DeadlineError, UnavailableError) or
    after the task that awaited it was cancelled are given back in the background.
    """

    def __init__(
        self,
        address: str,
        *,
        name: str = "",
        timeout: float = 5.0,
        on_session_lost: Callable[[Session], None] | None = None,
        tls: Tls | None = None,
        token: str | None = None,
        lane: bool = True,
    ) -> None:
        """For "unix:/path", "/path" or "host:port"; made in the event loop.

        `tls`, `token` and `lane` as for `pando_kv.Client`.
        """
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = Connection(
            Access(address, tls, token), self._sessions, timeout, lane
        )
        self._make_lock = partial(AsyncLock, self._connection)
        self._links: list[SessionLink] = []

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
    def transport(self) -> str:
        """How calls that a lane carries go at present: "lane" or "grpc"."""
        return "lane" if self._connection.lane.is_open else "grpc"

    @property
    def why_no_lane(self) -> str:
        """Why `transport` is "grpc"; empty while it is not."""
        return self._connection.lane.why_not

    async def gauges(self) -> Gauges:
        """As `pando_kv.Client.gauges`."""
        read = self._connection.lane.read_gauges()
        if read is not None:
            return read
        stats = await self.stats()
        return Gauges(
            stats.pages, stats.epoch, self._sessions.draining, stats.eviction_policy
        )

    def batch(self) -> AsyncBatch:
        """As `pando_kv.Client.batch`, with `async with`."""
        return AsyncBatch(self._connection, self._make_lock)

    @property
    def room(self) -> PageRoom | None:
        """Free and evictable pages of the pool, as the last answer of match_prefix,
        insert or allocate_pages told them; None before the first one."""
        return self._sessions.room

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down: finish what runs, admit nothing new."""
        return self._sessions.draining

    async def match_prefix(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
        max_tokens: int | None = None,
        lock: bool = False,
        reserve_tokens: int = 0,
        touch: bool = True,
        pending_wait: float = 0.0,
    ) -> Match[AsyncLock]:
        """Finds the longest cached prefix of the prompt, in whole pages.

        `max_tokens` caps the match (None: no cap, 0: no match); `lock` locks what
        matched; `reserve_tokens` reserves the pages that the match did not give, for
        that many tokens counted from the start of the prompt, and is refused without
        `lock`. All in one atomic step.

        `after` is the handle of a prefix of the prompt that was matched or inserted
        before. `tokens` is the whole prompt nevertheless: it must begin with the tokens
        of that prefix, which are neither sent nor compared. When nothing is left of the
        handle the whole prompt is sent, and `first_page` of the result is 0.

        `pending_wait`, in seconds, at most 600: wait so long while another call
        computes the page after the match, instead of computing it too. It adds to the
        timeout, and is refused without `lock`.
        """
        call = _prefix_calls.match_prefix(
            self._sessions,
            self._make_lock,
            tokens,
            namespace=namespace,
            after=after,
            max_tokens=max_tokens,
            lock=lock,
            reserve_tokens=reserve_tokens,
            touch=touch,
            pending_wait=pending_wait,
        )
        return await self._connection.send(call)

    async def match_prefixes(self, queries: Sequence[PrefixQuery]) -> list[PrefixScore]:
        """Matches the prompts of a waiting queue: a score for each, in order.

        Changes nothing, not even what was recently used. At most 4,096 queries; the
        server's limit on tokens holds for all of them together.
        """
        scoring = _prefix_calls.Scoring(self._sessions, queries)
        while call := scoring.next_call():
            await self._connection.send(call)
        return scoring.scores

    async def insert(
        self,
        tokens: Any,
        page_ids: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
        lock: AsyncLock | None = None,
        relock: bool = False,
        unlock: bool = False,
        keep_duplicates: bool = False,
        free_page_ids: Any = (),
        generation: int | None = None,
        prompt_tokens: int = 0,
        priority: int = 0,
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

        Without a lock, `after` may be the handle of a prefix of the tokens. Tokens and
        page ids are nevertheless those from the start, and must begin with those of
        that prefix, which are not sent unless nothing is left of the handle.

        In a bigram namespace n tokens, those of `prompt_tokens` included, are n - 1
        units, and there is a page for each whole page of units. `priority` counts for
        the eviction policy of that name: higher stays longer.
        """
        return await self._connection.send(
            _prefix_calls.insert(
                self._sessions,
                tokens,
                page_ids,
                namespace=namespace,
                after=after,
                lock=lock,
                relock=relock,
                unlock=unlock,
                keep_duplicates=keep_duplicates,
                free_page_ids=free_page_ids,
                generation=generation,
                prompt_tokens=prompt_tokens,
                priority=priority,
            )
        )

    async def lock(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
    ) -> AsyncLock:
        """Locks the longest cached prefix of the tokens; `after` as in a match."""
        call = _prefix_calls.lock(
            self._sessions, self._make_lock, tokens, namespace=namespace, after=after
        )
        return await self._connection.send(call)

    async def unlock(self, *locks: AsyncLock) -> None:
        """Releases locks, all or none; those released already are left out."""
        await self._connection.unlock(*locks)

    async def evict(self, pages: int) -> int:
        """Evicts up to that many pages; returns how many."""
        return await self._connection.send(_prefix_calls.evict(pages))

    async def allocate_pages(
        self,
        pages: int,
        *,
        at_least: int | None = None,
        namespace: Namespace | None = None,
    ) -> Uint32Array:
        """Reserves pages for the session, evicting as needed.

        All or nothing; with `at_least` as many as there is room for, but not fewer
        than that. They count for the quota of the namespace.
        """
        call = _pool_calls.allocate_pages(
            self._sessions, pages, at_least=at_least, namespace=namespace
        )
        return await self._connection.send(call)

    async def free_pages(self, page_ids: Any, *, generation: int | None = None) -> None:
        """Gives reserved pages back, all or none."""
        await self._connection.send(
            _pool_calls.free_pages(self._sessions, page_ids, generation=generation)
        )

    async def end_session(self, session: Session) -> None:
        """Says of a session that was lost while this process lives on: nothing of it
        writes any more to the pages that the session had reserved, no kernel on the
        device either.

        Until it says so, has closed the pool that it attached with that session, or has
        ended, nobody gets these pages.
        """
        await self._connection.send(_pool_calls.end_session(session.session_id))

    async def describe_pool(self) -> PoolDescription:
        return await self._connection.send(_pool_calls.describe_pool())

    async def attach_pool(
        self,
        *,
        expected_layout: KvLayout | None = None,
        model: str | None = None,
        addresses: Sequence[int] = (),
    ) -> MappedPool:
        """Maps the pool. What is given must agree with the server, or it refuses.

        What is not given is taken from the server. `addresses`, those of a pool on
        GPUs that is closed, are used again where they are free: CUDA graphs hold them.
        """
        grant = await self._connection.send(
            _pool_calls.attach_pool(
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
            addresses,
        )

    async def link_session(self, session_id: int) -> SessionLink:
        """Says that this process writes pages that another process of its engine has
        reserved in that session, its client's `session_id`.

        When that session is lost, its pages are not given to others before the link
        or this client is closed, or its process gone, too; where pandod cannot tell
        that, before a time has passed (--quarantine). Keep session ids within the
        engine: who knows one may act in its name.
        """
        grant = await self._connection.send(
            _pool_calls.link_session(self._sessions, session_id)
        )
        link = await asyncio.to_thread(
            SessionLink, grant.memory_socket, grant.token, self._connection.timeout
        )
        self._links.append(link)
        return link

    async def close(self) -> None:
        """Ends the session: the server releases its locks and takes its pages back."""
        await self._connection.close()
        for link in self._links:
            link.close()

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBatch(CallList["AsyncLock"]):
    """As `pando_kv.client.Batch`, sent on leaving its `async with` block."""

    def __init__(
        self, connection: Connection, make_lock: Callable[..., AsyncLock]
    ) -> None:
        super().__init__(connection.sessions, make_lock)
        self._connection = connection

    async def send(self) -> None:
        """Sends the calls that were added since the last time."""
        try:
            while answers := self._take():
                await self._connection.send_together(answers)
        except BaseException:
            self._give_up()
            raise

    async def __aenter__(self) -> AsyncBatch:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            await self.send()
        else:
            self._give_up()


class AsyncLock(LockHandle):
    """A lock of the asyncio client, released on leaving its `async with` block."""

    def __init__(
        self,
        connection: Connection,
        session: Session,
        lock_id: int,
        tokens: int,
        handle: PrefixHandle | None,
    ) -> None:
        super().__init__(connection.sessions, session, lock_id, tokens, handle)
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
