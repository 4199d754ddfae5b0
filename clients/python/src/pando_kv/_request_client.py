"""The calls that the blocking client makes for each request.

With a lane, the native module makes these calls, from the arguments to the result.
Arguments that it does not take, and calls for which it has no result, go through
Connection like all other calls.
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

# The options of insert with their defaults, in the native module's order.
_INSERT_OPTIONS = {
    name: option.default
    for name, option in inspect.signature(_prefix_calls.insert).parameters.items()
    if option.kind is option.KEYWORD_ONLY and name != "begun"
}


class RequestClient:
    """The part of `Client` with the calls of each request. Any thread may call it."""

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
        """Begins an `insert`, with all of its options except `relock`. Ask the answer
        for its `result()`.

        `result()` waits, and raises what `insert` would have raised. pandod begins the
        calls on a lane in their order. A lane has room for 64 calls whose results were
        not asked for, and for fewer large ones. Without a lane, or without room on the
        lane, this method waits for the whole call. Do not change the given arrays
        before the result is there. Raises ValueError if `relock` is set.
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
        """Reserves pages for the session, and evicts cached pages as needed.

        Reserves all pages or none. With `at_least`, reserves as many as there is room
        for, but not fewer than `at_least`. The pages count against the quota of the
        namespace. Raises PoolExhaustedError, QuotaExceededError or SessionLimitError if
        they do not fit.
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
    """A lock of the blocking client, released at the end of its `with` block. Owned by
    the caller that took the lock; any thread may release it."""

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
        """Releases the lock. Does nothing if the lock was released already."""
        self._connection.unlock(self)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            self.release()
        except PandoError:
            # An error of the block matters more than one of the release.
            if error is None:
                raise
