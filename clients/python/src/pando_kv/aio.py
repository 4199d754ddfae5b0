"""The asyncio clients, with the calls of `pando_kv.Client` and `pando_kv.Operator`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pando_kv import _open_pool, _pool_calls, _prefix_calls
from pando_kv._aio_block_client import AsyncBlockClient
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
    ExpectedReuse,
    Gauges,
    Insert,
    Load,
    Match,
    Namespace,
    PageRoom,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
)
from pando_kv.tls import Tls

__all__ = ["AsyncClient", "AsyncLock", "AsyncOperator"]


class AsyncClient(AsyncBlockClient, AsyncOperatorClient):
    """One worker's session with pandod, for the tasks of one event loop. Owned by the
    worker.

    `async with AsyncClient(address) as client:` opens the session. The calls and their
    order are those of `pando_kv.Client`.

    A task keeps the session alive. When the connection breaks, the task resumes the
    session, also with the next pandod if sessions outlive pandod. When pandod no longer
    knows the session, the task opens a new session, and calls `on_session_lost` in the
    event loop before the new session can be used. No call waits longer than `timeout`
    seconds plus its `pending_wait`.

    When the connection breaks during a call that changes something, the call is
    repeated for most of a second, and pandod acts on it only once. If the call still
    ends without an answer (DeadlineError, UnavailableError), or the task that awaits it
    is cancelled, the client gives back in the background the locks and pages that the
    call may have obtained.
    """

    def __init__(
        self,
        address: str = "",
        *,
        name: str = "",
        timeout: float = 5.0,
        on_session_lost: Callable[[Session], None] | None = None,
        tls: Tls | None = None,
        token: str | None = None,
        lane: bool = True,
    ) -> None:
        """Creates a client without connecting; call it in the event loop.

        `address`, `tls`, `token` and `lane` are as for `pando_kv.Client`.
        """
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = Connection(
            Access(address, tls, token), self._sessions, timeout, lane
        )
        self._make_lock = partial(AsyncLock, self._connection)
        self._links: list[SessionLink] = []

    async def connect(self) -> None:
        """Opens the session; `async with` calls this method.

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
        """The random id of what sessions hold, which stays when sessions outlive
        pandod. Page ids, locks and sessions of another epoch are void. It may differ
        from the epoch of stats, gauges and events, which names the run of pandod."""
        return self._sessions.current().epoch

    @property
    def generation(self) -> int:
        """The number of sessions that this client has had, including the
        present one."""
        return self._sessions.generation

    @property
    def pool(self) -> PoolDescription:
        """The pool as described when the session was opened."""
        return self._sessions.current().pool

    @property
    def transport(self) -> str:
        """The present transport of the calls of each request: "lane" or "grpc"."""
        return "lane" if self._connection.lane.is_open else "grpc"

    @property
    def why_no_lane(self) -> str:
        """The reason why `transport` is "grpc"; empty while it is "lane"."""
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
        """The number of pages that no session held when the last match_prefix, insert
        or allocate_pages was answered; None before the first such answer in the present
        session."""
        return self._sessions.room

    @property
    def draining(self) -> bool:
        """Whether pandod is shutting down: finish running requests, admit no
        new ones."""
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
        load: Load = Load.SERVER_POLICY,
    ) -> Match[AsyncLock]:
        """Finds the longest cached prefix of the prompt, in whole pages.

        `max_tokens` caps the match (None: no cap, 0: no match). `lock` locks the
        matched prefix, even an empty one. `reserve_tokens` reserves pages so that
        matched and reserved pages together hold this many tokens from the start of the
        prompt; it needs `lock`. Match, lock and reservation happen in one step, or none
        of them happens.

        `after` is the handle of a prefix of this prompt, from an earlier match or
        insert. `tokens` is still the whole prompt, but the tokens under the handle are
        neither sent nor compared. If the handle is gone, the whole prompt is sent, and
        `first_page` of the result is 0.

        `pending_wait` applies if another call is computing the page after the match:
        wait up to this many seconds, at most 600, for that page instead of computing it
        again. The wait is added to the timeout, and needs `lock`.

        `load` says how to treat tokens that only a tier has.
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
            load=load,
        )
        return await self._connection.send(call)

    async def match_prefixes(
        self, queries: Sequence[PrefixQuery], *, tell_loadable: bool = False
    ) -> list[PrefixScore]:
        """Scores the prompts of a waiting queue: returns how much of each is cached, in
        order.

        Changes nothing, not even recency. At most 4,096 queries; pandod's limit on
        tokens applies to all of them together.

        With `tell_loadable` the scores also say how much of each prompt a tier has. For
        that pandod hashes the prompts, 262,144 tokens at most, and the prompts are sent
        whole, without handles.
        """
        scoring = _prefix_calls.Scoring(
            self._sessions, queries, tell_loadable=tell_loadable
        )
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
        output_tokens: int | None = None,
        expected_reuse: ExpectedReuse = ExpectedReuse.UNKNOWN,
        retain_seconds: int = 0,
    ) -> Insert:
        """Publishes pages whose KV is complete, one for each whole page of tokens.

        From then on the pages are immutable, and every worker can match them. Pages
        whose tokens were cached already (duplicates) are freed, unless
        `keep_duplicates` is set.

        With `lock`, tokens and page ids begin at the end of the lock, in the lock's
        namespace. `relock` moves the lock to the end of the insert (for a chunk of a
        prefill), and `unlock` releases the lock (at the end of a request). After a
        match with `reserve_tokens`, pandod knows the rest of the prompt: the first
        `prompt_tokens` tokens after the lock need not be sent, and `tokens` are those
        that follow them, possibly none. `free_page_ids` are reserved pages that are
        freed in the same step.

        Without a lock, `generation` guards the page ids: page ids of an earlier session
        are refused. `after` may be the handle of a prefix of `tokens`; the tokens under
        the handle are not sent, but `tokens` and `page_ids` still begin at the start of
        the prompt.

        In a bigram namespace n tokens, including those of `prompt_tokens`, are n - 1
        units, and each whole page of units has a page. `priority` matters for the
        eviction policy "priority": a prefix of higher priority is kept longer.
        `output_tokens`, the number of tokens that the request has generated so far, is
        a hint for the policy "reuse"; without it, the tokens inserted after the prompt
        count.

        `expected_reuse` and `retain_seconds` are hints for eviction. A prefix marked as
        ended is evicted first, until it is used again. A retained prefix is spared
        while other prefixes can be evicted, until its time is up; its quota class
        limits that time. A later insert can lengthen the time or end it, but not
        shorten it.
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
                output_tokens=output_tokens,
                expected_reuse=expected_reuse,
                retain_seconds=retain_seconds,
            )
        )

    async def lock(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
    ) -> AsyncLock:
        """Locks the longest cached prefix of the tokens. `after` works as in
        `match_prefix`."""
        call = _prefix_calls.lock(
            self._sessions, self._make_lock, tokens, namespace=namespace, after=after
        )
        return await self._connection.send(call)

    async def unlock(self, *locks: AsyncLock) -> None:
        """Releases locks, all or none. Locks that were released already are skipped."""
        await self._connection.unlock(*locks)

    async def evict(self, pages: int) -> int:
        """Evicts up to `pages` pages, and returns the number of evicted pages."""
        return await self._connection.send(_prefix_calls.evict(pages))

    async def allocate_pages(
        self,
        pages: int,
        *,
        at_least: int | None = None,
        namespace: Namespace | None = None,
    ) -> Uint32Array:
        """Reserves pages for the session, and evicts cached pages as needed.

        Reserves all pages or none. With `at_least`, reserves as many as there is room
        for, but not fewer than `at_least`. The pages count against the quota of the
        namespace. Raises PoolExhaustedError, QuotaExceededError or SessionLimitError if
        they do not fit.
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
        """Declares that nothing in this process, and no kernel on the device, writes
        any more to the pages that a lost session had reserved. pandod frees these pages
        at once.

        Without this call the pages stay quarantined until the process has closed the
        pool that it attached with that session, or has ended.
        """
        await self._connection.send(_pool_calls.end_session(session.session_id))

    async def describe_pool(self) -> PoolDescription:
        return await self._connection.send(_pool_calls.describe_pool())

    async def attach_pool(
        self,
        *,
        expected_layout: KvLayout | None = None,
        model: str | None = None,
        model_digest: str = "",
        shards: Sequence[int] | None = None,
        addresses: Sequence[int] = (),
    ) -> MappedPool:
        """Maps the pool into this process. Raises LayoutMismatchError if
        `expected_layout` or `model` is given and differs from pandod's, or if
        `model_digest` differs from the one with which another process attached first.

        An open pool takes over `expected_layout` and `model`, or those of a worker that
        came first. pandod then restarts itself with the layout taken, and the client
        gets a new session. Make the layout with `capacity_pages=0`; the pool's
        description says how many pages there are.

        `shards` are the shards to map; None means all. Tensor-parallel rank r uses
        shard r, and should map no other, because each device of a mapped shard must be
        visible to this process and gets a CUDA context in it. `addresses` are those of
        a closed pool on GPUs, for CUDA graphs that still hold them: the shards are
        mapped at the same addresses again. Raises PandoError with the reason
        ADDRESS_TAKEN if the driver gives another address; then attach without
        addresses, and capture the graphs again.
        """
        if (expected_layout and expected_layout.has_no_size) or self.pool.is_open:
            await self._say_layout(expected_layout, model)
        return await self._connection.attach(
            lambda: _pool_calls.attach_pool(
                self._sessions,
                expected_layout=expected_layout,
                model=model,
                model_digest=model_digest,
            ),
            lambda grant: MappedPool.attach(
                grant.session.pool,
                grant.session.epoch,
                grant.memory_socket,
                grant.token,
                self._connection.timeout,
                shards,
                addresses,
            ),
        )

    async def _say_layout(self, layout: KvLayout | None, model: str | None) -> None:
        connection = self._connection
        for call in _open_pool.calls(self._sessions, layout, model, connection.timeout):
            with _open_pool.while_it_begins_anew():
                if call is not None:
                    await connection.send(call)
            await asyncio.sleep(_open_pool.PAUSE)

    async def link_session(self, session_id: int) -> SessionLink:
        """Declares that this process writes pages that another process of its engine
        has reserved. `session_id` is that of the other process's client.

        After that session is lost, its pages are not free before this link or client is
        closed, or this process has ended. If pandod cannot watch this process, the
        pages are freed only after a time limit (--quarantine). Keep session ids within
        the engine, because a process that knows one can act in its name.
        """
        link = await self._connection.attach(
            lambda: _pool_calls.link_session(self._sessions, session_id),
            lambda grant: SessionLink(
                grant.memory_socket, grant.token, self._connection.timeout
            ),
        )
        self._links.append(link)
        return link

    async def close(self) -> None:
        """Ends the session. pandod then releases the session's locks and takes its
        pages back."""
        await self._connection.close()
        for link in self._links:
            link.close()

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBatch(CallList["AsyncLock"]):
    """Calls that travel together; the asyncio version of `pando_kv.client.Batch`, sent
    at the end of its `async with` block. Owned by one task."""

    def __init__(
        self, connection: Connection, make_lock: Callable[..., AsyncLock]
    ) -> None:
        super().__init__(connection.sessions, make_lock)
        self._connection = connection

    async def send(self) -> None:
        """Sends the calls that were added since the last `send`."""
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
    """A lock of the asyncio client, released at the end of its `async with` block.
    Owned by the caller that took the lock."""

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
        """Releases the lock. Does nothing if the lock was released already."""
        await self._connection.unlock(self)

    async def __aenter__(self) -> AsyncLock:
        return self

    async def __aexit__(
        self, kind: object, error: BaseException | None, _: object
    ) -> None:
        try:
            await self.release()
        except PandoError:
            # An error of the block matters more than one of the release.
            if error is None:
                raise
