"""The synchronous client."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pando_kv import _pool_calls, _prefix_calls
from pando_kv._batch import CallList
from pando_kv._channel import Access
from pando_kv._connection import Connection
from pando_kv._locks import LockHandle
from pando_kv._memory_socket import SessionLink
from pando_kv._operator_client import OperatorClient
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


class Client(OperatorClient):
    """One worker's session with pandod. Any thread may use it.

    A background thread keeps the session alive: it resumes it when the connection
    breaks and opens a new one when the server no longer knows it, for example after
    a restart. `on_session_lost` is then called on that thread, before there is a new
    session. No call waits longer than `timeout` seconds, its `pending_wait` not
    counted.

    Where the connection breaks under a call that changes something, the call is
    repeated for most of a second, and the server acts on it once. Locks and pages that
    a call brings after it ended without an answer (DeadlineError, UnavailableError, an
    interrupt) are given back in the background.

    Do not use a client in a forked child; start processes with "spawn".
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
        """Opens a session at "unix:/path", "/path" or "host:port".

        `tls` is needed where pandod has a certificate, `token` where it recognises its
        callers by bearer tokens; only TLS keeps it secret on the way. `lane`: over a
        Unix socket, ask for a lane, shared memory that carries the calls of each
        request much faster than gRPC; `transport` says whether there is one.

        Raises UnavailableError if there is no answer within `timeout` seconds.
        """
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = Connection(
            Access(address, tls, token), self._sessions, timeout, lane
        )
        self._make_lock = partial(Lock, self._connection)
        self._links: list[SessionLink] = []
        # Ends the session also when the client is dropped or the process exits.
        self._finalizer = weakref.finalize(self, _close, self._connection, self._links)
        try:
            self._connection.open()
        except BaseException:
            self.close()
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

    def gauges(self) -> Gauges:
        """What the cache holds, as of one moment: with a lane read from memory, without
        a call."""
        read = self._connection.lane.read_gauges()
        if read is not None:
            return read
        stats = self.stats()
        return Gauges(
            stats.pages, stats.epoch, self._sessions.draining, stats.eviction_policy
        )

    def batch(self) -> Batch:
        """Calls that go together: `with client.batch() as batch:`, then
        `batch.match_prefix(...)` and so on. They are sent on leaving the block."""
        return Batch(self._connection, self._make_lock)

    @property
    def room(self) -> PageRoom | None:
        """Free and evictable pages of the pool, as the last answer of match_prefix,
        insert or allocate_pages told them; None before the first one."""
        return self._sessions.room

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down: finish what runs, admit nothing new."""
        return self._sessions.draining

    def match_prefix(
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
    ) -> Match[Lock]:
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
        return self._connection.send(call)

    def match_prefixes(self, queries: Sequence[PrefixQuery]) -> list[PrefixScore]:
        """Matches the prompts of a waiting queue: a score for each, in order.

        Changes nothing, not even what was recently used. At most 4,096 queries; the
        server's limit on tokens holds for all of them together.
        """
        scoring = _prefix_calls.Scoring(self._sessions, queries)
        while call := scoring.next_call():
            self._connection.send(call)
        return scoring.scores

    def insert(
        self,
        tokens: Any,
        page_ids: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
        lock: Lock | None = None,
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
        return self._connection.send(
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

    def lock(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
    ) -> Lock:
        """Locks the longest cached prefix of the tokens; `after` as in a match."""
        call = _prefix_calls.lock(
            self._sessions, self._make_lock, tokens, namespace=namespace, after=after
        )
        return self._connection.send(call)

    def unlock(self, *locks: Lock) -> None:
        """Releases locks, all or none; those released already are left out."""
        self._connection.unlock(*locks)

    def evict(self, pages: int) -> int:
        """Evicts up to that many pages; returns how many."""
        return self._connection.send(_prefix_calls.evict(pages))

    def allocate_pages(
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
        return self._connection.send(call)

    def free_pages(self, page_ids: Any, *, generation: int | None = None) -> None:
        """Gives reserved pages back, all or none."""
        self._connection.send(
            _pool_calls.free_pages(self._sessions, page_ids, generation=generation)
        )

    def end_session(self, session: Session) -> None:
        """Says of a session that was lost while this process lives on: nothing of it
        writes any more to the pages that the session had reserved, no kernel on the
        device either.

        Until it says so, has closed the pool that it attached with that session, or has
        ended, nobody gets these pages.
        """
        self._connection.send(_pool_calls.end_session(session.session_id))

    def describe_pool(self) -> PoolDescription:
        return self._connection.send(_pool_calls.describe_pool())

    def attach_pool(
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
        grant = self._connection.send(
            _pool_calls.attach_pool(
                self._sessions, expected_layout=expected_layout, model=model
            )
        )
        return MappedPool.attach(
            grant.session.pool,
            grant.session.epoch,
            grant.memory_socket,
            grant.token,
            self._connection.timeout,
            addresses,
        )

    def link_session(self, session_id: int) -> SessionLink:
        """Says that this process writes pages that another process of its engine has
        reserved in that session, its client's `session_id`.

        When that session is lost, its pages are not given to others before the link
        or this client is closed, or its process gone, too; where pandod cannot tell
        that, before a time has passed (--quarantine). Keep session ids within the
        engine: who knows one may act in its name.
        """
        grant = self._connection.send(
            _pool_calls.link_session(self._sessions, session_id)
        )
        link = SessionLink(grant.memory_socket, grant.token, self._connection.timeout)
        self._links.append(link)
        return link

    def close(self) -> None:
        """Ends the session: the server releases its locks and takes its pages back."""
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Batch(CallList["Lock"]):
    """Calls that go together: one doorbell on a lane, one call over gRPC.

    Each takes what the client's call takes, is carried out in its place in the order,
    whatever becomes of the others, and has a `result()` once the `with` block is left,
    or after `send()` or `begin()`.
    """

    def __init__(self, connection: Connection, make_lock: Callable[..., Lock]) -> None:
        super().__init__(connection.sessions, make_lock)
        self._connection = connection

    def send(self) -> None:
        """Sends the calls that were added since the last time."""
        try:
            while answers := self._take():
                self._connection.send_together(answers)
        except BaseException:
            self._give_up()
            raise

    def begin(self) -> None:
        """As send(), but on a lane without waiting: each `result()` does, and must be
        asked for. Over gRPC there is nothing left to wait for then."""
        try:
            while answers := self._take():
                self._connection.begin_together(answers)
        except BaseException:
            self._give_up()
            raise

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.send()
        else:
            self._give_up()


class Lock(LockHandle):
    """A lock of the synchronous client, released on leaving its `with` block."""

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

    def release(self) -> None:
        """Does nothing if the lock was released already."""
        self._connection.unlock(self)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            self.release()
        except PandoError:
            # The error of the block is the one to tell.
            if error is None:
                raise


def _close(connection: Connection, links: Sequence[SessionLink]) -> None:
    connection.close()
    for link in links:
        link.close()
