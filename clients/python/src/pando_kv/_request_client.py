"""The calls of each request, of the synchronous client.

On a lane the native module makes them, from the arguments to the result. What it does
not take, or has no result of, goes the way of all other calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pando_kv import _pool_calls, _prefix_calls
from pando_kv._batch import Answer, BatchAnswer
from pando_kv._connection import Connection
from pando_kv._locks import LockHandle
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError
from pando_kv.results import (
    ExpectedReuse,
    Insert,
    Load,
    Match,
    Namespace,
    PrefixHandle,
)

# In the order in which the native module takes them.
_INSERT_OPTIONS = {
    name: option.default
    for name, option in inspect.signature(_prefix_calls.insert).parameters.items()
    if option.kind is option.KEYWORD_ONLY and name != "begun"
}


class RequestClient:
    """The part of `Client` for the calls of each request. Any thread may call it."""

    _connection: Connection
    _sessions: SessionTracker
    _make_lock: Callable[..., Lock]

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
        load: Load = Load.SERVER_POLICY,
    ) -> Match[Lock]:
        """Finds the longest cached prefix of the prompt, in whole pages.

        `max_tokens` caps the match (None: no cap, 0: no match). `lock` locks what
        matched, even if that is nothing. `reserve_tokens` reserves pages so that
        matched and reserved pages together have room for this many tokens from the
        start of the prompt; it needs `lock`. All of it happens in one step, or nothing
        does.

        `after` is a handle of a prefix of this prompt, from an earlier match or insert.
        `tokens` is still the whole prompt; the tokens that the handle covers are
        neither sent nor compared. When the handle is gone, the whole prompt is sent,
        and `first_page` of the result is 0.

        `pending_wait` is for the case that another call computes the page after the
        match: how many seconds, at most 600, to wait for it instead of computing the
        page again. It is added to the timeout, and needs `lock`.

        `load` says what is done about tokens that only a tier has.
        """
        calls = self._connection.requests
        begun = calls and calls.match_prefix(
            self._connection.patience,
            self._make_lock,
            tokens,
            namespace,
            after,
            max_tokens,
            lock,
            reserve_tokens,
            touch,
            pending_wait,
            load,
        )
        if isinstance(begun, Match):
            return begun
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
            begun=begun,
        )
        return self._connection.go_on(call, begun)

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
        output_tokens: int | None = None,
        expected_reuse: ExpectedReuse = ExpectedReuse.UNKNOWN,
        retain_seconds: int = 0,
    ) -> Insert:
        """Publishes pages whose KV is complete, one for each whole page of tokens.

        From then on the pages are immutable, and every worker matches them. Pages whose
        tokens were cached already (duplicates) are freed, unless `keep_duplicates`.

        With `lock`, tokens and page ids begin where the lock ends, in its namespace.
        `relock` moves the lock to the end of the insert (a chunk of a prefill),
        `unlock` releases it (the finish of a request). After a match with
        `reserve_tokens` the server holds the rest of the prompt: the first
        `prompt_tokens` tokens after the lock need not be sent, and `tokens`, which may
        be empty, are those that follow. `free_page_ids` are reserved pages to free in
        the same step.

        Without a lock, `generation` guards the page ids: those of a session that is
        over are refused. `after` may be a handle of a prefix of `tokens`, whose tokens
        are then not sent; `tokens` and `page_ids` are still those from the start.

        In a bigram namespace n tokens, those of `prompt_tokens` included, are n - 1
        units, and there is a page for each whole page of units. `priority` counts for
        the eviction policy of that name: a prefix of higher priority is kept longer.
        `output_tokens`, how many tokens the request generated so far, is a hint for
        the policy reuse; without it those count that are inserted after the prompt.

        `expected_reuse` and `retain_seconds` are hints for what is evicted: a prefix
        that has ended goes first, until it is used again; one that is retained is
        spared until its time is up, at most for as long as its quota class may, while
        others are left. A later insert can only lengthen that time, or end it.
        """
        calls = self._connection.requests
        begun = calls and calls.insert(
            self._connection.patience,
            tokens,
            page_ids,
            namespace,
            after,
            lock,
            relock,
            unlock,
            keep_duplicates,
            free_page_ids,
            generation,
            prompt_tokens,
            priority,
            output_tokens,
            expected_reuse,
            retain_seconds,
        )
        if isinstance(begun, Insert):
            return begun
        call = _prefix_calls.insert(
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
            begun=begun,
        )
        return self._connection.go_on(call, begun)

    def begin_insert(
        self, tokens: Any, page_ids: Any, **options: Any
    ) -> Answer[Insert]:
        """Begins an `insert`, with its options but `relock`. Ask for `result()`.

        `result()` waits, and raises what `insert` would have raised. pandod begins the
        calls on a lane in their order, as long as the lane has room: for 64 calls whose
        results were not asked for, fewer if they are large. Without a lane, or without
        room on it, this waits for the whole call. Arrays that are given here must not
        change before there is a result.
        """
        if options.get("relock"):
            raise ValueError(
                "relock is set; a lock that moves needs an insert() that is waited for"
            )
        chosen = [
            options.get(name, default) for name, default in _INSERT_OPTIONS.items()
        ]
        calls = (
            self._connection.requests
            if options.keys() <= _INSERT_OPTIONS.keys()
            else None
        )
        begun = calls and calls.begin_insert(tokens, page_ids, *chosen)
        if begun is None:
            call = _prefix_calls.insert(self._sessions, tokens, page_ids, **options)
            in_batch = BatchAnswer(call)
            self._connection.begin_together([in_batch])
            return in_batch

        def finish() -> Insert:
            outcome = begun.result(self._connection.patience)
            if isinstance(outcome, Insert):
                return outcome
            call = _prefix_calls.insert(
                self._sessions, tokens, page_ids, **options, begun=outcome
            )
            return self._connection.go_on(call, outcome)

        answer: Answer[Insert] = Answer()
        answer.begin(finish)
        return answer

    def unlock(self, *locks: Lock) -> None:
        """Releases locks, all or none. Locks that were released already are skipped."""
        self._connection.unlock(*locks)

    def allocate_pages(
        self,
        pages: int,
        *,
        at_least: int | None = None,
        namespace: Namespace | None = None,
    ) -> Uint32Array:
        """Reserves pages for the session, evicting as needed.

        All or nothing; with `at_least`, as many as there is room for, but no fewer than
        `at_least`. They count for the quota of the namespace.
        """
        calls = self._connection.requests
        begun = calls and calls.allocate_pages(
            self._connection.patience, pages, at_least, namespace
        )
        if isinstance(begun, np.ndarray):
            return begun
        call = _pool_calls.allocate_pages(
            self._sessions, pages, at_least=at_least, namespace=namespace, begun=begun
        )
        return self._connection.go_on(call, begun)

    def free_pages(self, page_ids: Any, *, generation: int | None = None) -> None:
        """Gives reserved pages back, all or none."""
        calls = self._connection.requests
        begun = calls and calls.free_pages(
            self._connection.patience, page_ids, generation
        )
        if begun is not True:
            call = _pool_calls.free_pages(
                self._sessions, page_ids, generation=generation, begun=begun
            )
            self._connection.go_on(call, begun)


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
