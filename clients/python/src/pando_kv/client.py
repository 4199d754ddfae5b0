"""The blocking client."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pando_kv import _open_pool, _pool_calls, _prefix_calls
from pando_kv._batch import CallList
from pando_kv._block_client import BlockClient
from pando_kv._channel import Access
from pando_kv._connection import Connection
from pando_kv._memory_socket import SessionLink
from pando_kv._operator_client import OperatorClient
from pando_kv._request_client import Lock, RequestClient
from pando_kv._session import Session, SessionTracker
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.pool import MappedPool
from pando_kv.results import (
    Gauges,
    Namespace,
    PageRoom,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
)
from pando_kv.tls import Tls


class Client(RequestClient, BlockClient, OperatorClient):
    """One worker's session with pandod. Owned by the worker; any thread may use it.

    A request takes two calls:

        with Client("unix:/run/pando/pando.sock", name="my engine") as client:
            pool = client.attach_pool()  # map the memory, once

            # Admission: find the cached prefix, lock it, reserve pages for the rest.
            # An engine computes at least one token, so the match stops before the last.
            match = client.match_prefix(
                prompt,
                max_tokens=len(prompt) - 1,
                lock=True,
                reserve_tokens=len(prompt) + max_new_tokens,
            )
            # ... read match.page_ids, write the KV of the rest into
            # match.reserved_page_ids, generate ...

            # Finish: publish the whole pages, release the lock, free unused pages.
            # `tokens` and `page_ids` begin at match.lock.locked_tokens.
            client.insert(
                tokens,
                page_ids,
                lock=match.lock,
                unlock=True,
                free_page_ids=unused_page_ids,
            )

    A background thread keeps the session alive. When the connection breaks, the thread
    resumes the session, also with the next pandod if sessions outlive pandod. When
    pandod no longer knows the session, the thread opens a new session, and calls
    `on_session_lost` before the new session can be used. No call waits longer than
    `timeout` seconds plus its `pending_wait`. Only `attach_pool` can take longer: up to
    a minute, or `timeout` if that is longer, while an open pool takes its layout.

    When the connection breaks during a call that changes something, the call is
    repeated for most of a second, and pandod acts on it only once. If the call still
    ends without an answer (DeadlineError, UnavailableError, an interrupt), the client
    gives back in the background the locks and pages that the call may have obtained.

    Do not use a client in a forked child; start processes with "spawn".
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
        away_after: float | None = None,
    ) -> None:
        """Opens a session at "unix:/path", "/path" or "host:port". Without an address,
        uses PANDO_ADDRESS, or else the default socket.

        `tls` is needed if pandod has a certificate, and `token` if pandod recognises
        callers by bearer tokens; only TLS keeps a token secret on the way. With `lane`,
        the client asks for a lane if it can (over a Unix socket). A lane is shared
        memory that carries the calls of each request much faster than gRPC. `transport`
        says whether there is one.

        `away_after` is the timeout, in seconds, of the calls of each request. It is for
        a scheduler, which must go on even if pandod does not. When one of these calls
        ends without an answer, pandod counts as away: further such calls raise
        AwayError at once, until a background thread gets an answer from pandod.
        `unlock`, `free_pages`, `release_blocks`, `discard_blocks` and `publish_blocks`
        return at once instead, and are made when pandod is back. `insert` raises
        AwayError, like all other calls.

        Raises UnavailableError if there is no answer within `timeout` seconds.
        """
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = Connection(
            Access(address, tls, token), self._sessions, timeout, lane, away_after
        )
        self._make_lock = partial(Lock, self._connection)
        self._links: list[SessionLink] = []
        # The finalizer ends the session when the client is dropped or the process
        # exits.
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

    def gauges(self) -> Gauges:
        """Returns the number of pages in each state, all at one moment. With a lane,
        reads shared memory and makes no call."""
        read = self._connection.lane.read_gauges()
        if read is not None:
            return read
        stats = self.stats()
        return Gauges(
            stats.pages, stats.epoch, self._sessions.draining, stats.eviction_policy
        )

    def batch(self) -> Batch:
        """Makes a batch of calls that travel together, and are sent at the end of the
        `with` block.

        with client.batch() as batch:
            finished = batch.insert(tokens, page_ids, lock=lock, unlock=True)
            admitted = batch.match_prefix(prompt, lock=True, reserve_tokens=room)
        match = admitted.result()
        """
        return Batch(self._connection, self._make_lock)

    @property
    def room(self) -> PageRoom | None:
        """The number of pages that no session held when the last match_prefix, insert
        or allocate_pages was answered; None before the first such answer in the present
        session."""
        return self._sessions.room

    @property
    def is_away(self) -> bool:
        """Whether pandod counts as away, so that calls of requests are not made; see
        `away_after`."""
        return self._connection.presence.is_away

    @property
    def draining(self) -> bool:
        """Whether pandod is shutting down: finish running requests, admit no
        new ones."""
        return self._sessions.draining

    def match_prefixes(
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
            self._connection.send(call)
        return scoring.scores

    def lock(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        after: PrefixHandle | None = None,
    ) -> Lock:
        """Locks the longest cached prefix of the tokens. `after` works as in
        `match_prefix`."""
        call = _prefix_calls.lock(
            self._sessions, self._make_lock, tokens, namespace=namespace, after=after
        )
        return self._connection.send(call)

    def evict(self, pages: int) -> int:
        """Evicts up to `pages` pages, and returns the number of evicted pages."""
        return self._connection.send(_prefix_calls.evict(pages))

    def end_session(self, session: Session) -> None:
        """Declares that nothing in this process, and no kernel on the device, writes
        any more to the pages that a lost session had reserved. pandod frees these pages
        at once.

        Without this call the pages stay quarantined until the process has closed the
        pool that it attached with that session, or has ended.
        """
        self._connection.send(_pool_calls.end_session(session.session_id))

    def describe_pool(self) -> PoolDescription:
        return self._connection.send(_pool_calls.describe_pool())

    def attach_pool(
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
            self._say_layout(expected_layout, model)
        return self._connection.attach(
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

    def _say_layout(self, layout: KvLayout | None, model: str | None) -> None:
        connection = self._connection
        for call in _open_pool.calls(self._sessions, layout, model, connection.timeout):
            with _open_pool.while_it_begins_anew():
                if call is not None:
                    connection.send(call)
            time.sleep(_open_pool.PAUSE)

    def link_session(self, session_id: int) -> SessionLink:
        """Declares that this process writes pages that another process of its engine
        has reserved. `session_id` is that of the other process's client.

        After that session is lost, its pages are not free before this link or client is
        closed, or this process has ended. If pandod cannot watch this process, the
        pages are freed only after a time limit (--quarantine). Keep session ids within
        the engine, because a process that knows one can act in its name.
        """
        link = self._connection.attach(
            lambda: _pool_calls.link_session(self._sessions, session_id),
            lambda grant: SessionLink(
                grant.memory_socket, grant.token, self._connection.timeout
            ),
        )
        self._links.append(link)
        return link

    def close(self) -> None:
        """Ends the session. pandod then releases the session's locks and takes its
        pages back."""
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Batch(CallList["Lock"]):
    """Calls that travel together, with one doorbell on a lane or as one call over gRPC.
    Owned by one thread.

    Each method takes the arguments of the client's method. pandod carries the calls out
    in their order, and each independently of the others' outcomes. A call has a
    `result()` after the end of the `with` block, or after `send()` or `begin()`.
    """

    def __init__(self, connection: Connection, make_lock: Callable[..., Lock]) -> None:
        super().__init__(connection.sessions, make_lock)
        self._connection = connection

    def send(self) -> None:
        """Sends the calls that were added since the last `send`."""
        try:
            while answers := self._take():
                self._connection.send_together(answers)
        except BaseException:
            self._give_up()
            raise

    def begin(self) -> None:
        """Sends the calls as `send` does, but does not wait for calls that are under
        way on a lane: the `result()` of each such call waits, and must be asked for.
        For calls that the lane has no room for, and over gRPC, this method waits."""
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


def _close(connection: Connection, links: Sequence[SessionLink]) -> None:
    connection.close()
    for link in links:
        link.close()
