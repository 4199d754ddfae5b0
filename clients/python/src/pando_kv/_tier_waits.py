"""The waits of requests that stay in an engine's queue while a tier loads their
prompts."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pando_kv._held_prefix import HeldPrefix
from pando_kv._request_client import Lock
from pando_kv._side_calls import SideCalls
from pando_kv._wire import Uint32Array
from pando_kv.client import Client
from pando_kv.errors import PandoError
from pando_kv.results import Load, Match, Namespace, PendingOutcome

_log = logging.getLogger("pando_kv")

# The tokens and the namespace under which a request's prefix is cached.
Prompt = tuple[Uint32Array, Namespace | None]

# Pages that are loaded for requests not admitted yet are locked. The prompts of several
# such requests take at most 1/_PARTS of the pool, so that the rest is for running
# requests; a single prompt may take more. pandod loads at most 1/_LOADS of the pool at
# once.
_PARTS = 2
_LOADS = 4
# Seconds between two checks whether there is room to load.
_PAUSE = 0.02
_IN_VAIN = (
    PendingOutcome.GIVEN_UP,
    PendingOutcome.OWNER_LOST,
    PendingOutcome.TIMED_OUT,
)


@dataclass(eq=False)
class _Wait:
    tokens: Uint32Array
    namespace: Namespace | None
    until: float
    thread: threading.Thread | None = None
    is_over: bool = False
    is_loading: bool = False  # or has finished loading
    is_loadable: bool = False  # a tier has part of the prompt
    refused: int = -1  # _ended when its prompt last found no room
    held: HeldPrefix = field(default_factory=HeldPrefix)


class TierWaits:
    """The waits of an engine's requests for a tier. Owned by a scheduler, which asks
    about each request before the request is matched; used by its thread only.

    Pages that are loaded for a request, or are cached by then, are locked until the
    request is admitted or its time is up. Loads are therefore limited to the room that
    there is. Prompts beyond that limit stay in the queue, if a tier of this machine has
    them, until other requests are admitted. No request waits for pages that another
    worker computes, because some workers publish pages only at the end of a request.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        """Makes waits of at most `seconds` each; with 0 no request waits."""
        self._client = client
        self._seconds = seconds
        self._calls = SideCalls()
        self._waits: dict[str, _Wait] = {}
        self._ended = 0  # the number of waits that have given their room back

    def begin_step(self) -> None:
        self._calls.begin_step()
        now = time.monotonic()
        for wait in self._waits.values():
            if now >= wait.until:
                self._give_up(wait)

    def holds(self, request_id: str, prompt: Callable[[], Prompt]) -> bool:
        """Returns whether the request is to be left in the queue. The first question
        about a request begins its wait, if one more call may begin."""
        if not self._seconds:
            return False
        wait = self._waits.get(request_id)
        if wait is None:
            wait = self._begin(*prompt()) if self._calls.has_room() else None
            if wait is None:
                return False
            self._waits[request_id] = wait
        if not wait.is_over:
            self._go_on(wait)
        return not wait.is_over

    def is_held(self, request_id: str) -> bool:
        """Returns the last answer of holds() for the request."""
        wait = self._waits.get(request_id)
        return wait is not None and not wait.is_over

    def admitted(self, request_id: str) -> None:
        """Ends the wait of a request that has locked its prompt itself."""
        wait = self._waits.get(request_id)
        if wait is not None:
            self._give_up(wait)

    def forget(self, request_id: str) -> None:
        """Ends and forgets the wait of a request that is over or is queued again."""
        wait = self._waits.pop(request_id, None)
        if wait is not None:
            self._give_up(wait)

    def keep(self, request_ids: Container[str]) -> None:
        """Forgets the waits of all requests but these."""
        for request_id in [rid for rid in self._waits if rid not in request_ids]:
            self.forget(request_id)

    def _begin(self, tokens: Uint32Array, namespace: Namespace | None) -> _Wait | None:
        if not tokens.size:
            return None
        wait = _Wait(tokens, namespace, time.monotonic() + self._seconds)
        wait.is_loading = self._has_room(wait)
        self._call(wait)
        return None if wait.thread is None else wait

    def _call(self, wait: _Wait) -> None:
        run = self._load if wait.is_loading else self._look_up
        wait.thread = self._calls.begin(lambda: run(wait))

    def _go_on(self, wait: _Wait) -> None:
        if time.monotonic() >= wait.until:
            self._give_up(wait)
        elif wait.thread is not None and wait.thread.is_alive():
            return
        elif wait.is_loading:
            wait.is_over = True
            if not wait.held.is_there:
                self._give_up(wait)
        elif not wait.is_loadable:
            wait.is_over = True
        elif self._calls.has_room() and self._has_room(wait):
            wait.is_loading = True
            self._call(wait)

    def _give_up(self, wait: _Wait) -> None:
        wait.is_over = True
        if wait.is_loading:
            wait.is_loading = False
            self._ended += 1
        lock = wait.held.give_up()
        if lock is not None:
            with contextlib.suppress(PandoError):
                self._client.unlock(lock)

    def _has_room(self, wait: _Wait) -> bool:
        """Returns whether the prompt may be held beside the prompts of other waits."""
        if wait.refused == self._ended:
            return False
        pool = self._client.pool
        most = pool.capacity_pages // _PARTS * pool.layout.page_tokens
        others = [other for other in self._waits.values() if other.is_loading]
        if not others or _tokens_of([*others, wait]) <= most:
            return True
        wait.refused = self._ended
        return False

    # The methods below run in the thread of a wait. Their matches do not count as uses
    # or hits; the match of the admitted request does.

    def _look_up(self, wait: _Wait) -> None:
        try:
            found = self._client.match_prefix(
                wait.tokens, namespace=wait.namespace, touch=False, load=Load.NO
            )
        except PandoError as error:
            _log.warning("pandod: %s; not waiting for its tier", error)
            return
        wait.is_loadable = found.loadable_tokens > 0

    def _load(self, wait: _Wait) -> None:
        try:
            while self._load_more(wait) and wait.held.is_wanted_after(_PAUSE):
                pass
        except PandoError as error:
            _log.warning("pandod: %s; not waiting for its tier", error)

    def _load_more(self, wait: _Wait) -> bool:
        """Loads the prompt and waits for that. Returns whether some of it is still to
        be loaded, because there was no room for all."""
        found = self._lock(wait, load=Load.START)
        left = wait.until - time.monotonic()
        if not found.loadable_tokens or left <= 0:
            return False
        loaded = self._lock(wait, pending_wait=left)
        pool = self._client.pool
        at_once = pool.capacity_pages // _LOADS * pool.layout.page_tokens
        wanted = min(found.matched_tokens + found.loadable_tokens, at_once)
        return loaded.matched_tokens < wanted and loaded.pending not in _IN_VAIN

    def _lock(self, wait: _Wait, **options: Any) -> Match[Lock]:
        """Locks the part of the prompt that is cached now, in place of the lock held
        before, and returns the match."""
        match = self._client.match_prefix(
            wait.tokens, namespace=wait.namespace, touch=False, lock=True, **options
        )
        lock = match.lock
        if lock is not None and match.matched_tokens:
            lock = wait.held.put(lock)
        if lock is not None:
            # If there is no answer, the client goes on with the release in the
            # background.
            with contextlib.suppress(PandoError):
                self._client.unlock(lock)
        return match


def _tokens_of(waits: list[_Wait]) -> int:
    """Returns the number of tokens of all prompts, with shared prefixes counted
    once."""
    tokens = 0
    for i, wait in enumerate(waits):
        common = [
            _common(wait.tokens, other.tokens)
            for other in waits[:i]
            if other.namespace == wait.namespace
        ]
        tokens += wait.tokens.size - max(common, default=0)
    return tokens


def _common(a: Uint32Array, b: Uint32Array) -> int:
    """Returns the length of the common prefix of two prompts, in tokens."""
    size = min(a.size, b.size)
    differ = a[:size] != b[:size]
    return int(np.argmax(differ)) if differ.any() else size
