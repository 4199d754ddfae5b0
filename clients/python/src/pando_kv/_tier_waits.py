"""Requests that stay in an engine's queue while a tier loads their prompts."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Container
from dataclasses import dataclass

from pando_kv._side_calls import SideCalls
from pando_kv._wire import Uint32Array
from pando_kv.client import Client
from pando_kv.errors import PandoError
from pando_kv.results import Load, Namespace

_log = logging.getLogger("pando_kv")

# What is cached of a request is found under these.
Prompt = tuple[Uint32Array, Namespace | None]


@dataclass(frozen=True)
class _Wait:
    thread: threading.Thread
    until: float


class TierWaits:
    """Asked about each request before it is matched; owned by a scheduler, whose thread
    alone calls it. A wait leaves nothing behind but what was loaded, in the pool: the
    match that follows finds it as it finds all else. For what another worker computes
    nobody waits, as some publish it only at the end of their requests.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        """Nobody waits longer than `seconds`; with 0 nothing is asked."""
        self._client = client
        self._seconds = seconds
        self._calls = SideCalls()
        self._waits: dict[str, _Wait | None] = {}  # None: it is over

    def begin_step(self) -> None:
        self._calls.begin_step()

    def holds(self, request_id: str, prompt: Callable[[], Prompt]) -> bool:
        """Whether the request is to be left in the queue. When it is asked about for
        the first time, and there is room for one more, its wait begins."""
        if not self._seconds:
            return False
        if request_id not in self._waits:
            begun = self._begin(*prompt()) if self._calls.has_room() else None
            if begun is None:
                return False
            self._waits[request_id] = begun
        wait = self._waits[request_id]
        if wait is None:
            return False
        if wait.thread.is_alive() and time.monotonic() < wait.until:
            return True
        self._waits[request_id] = None
        return False

    def is_held(self, request_id: str) -> bool:
        """What holds() said of it last."""
        return self._waits.get(request_id) is not None

    def forget(self, request_id: str) -> None:
        """It is over, or waits anew."""
        self._waits.pop(request_id, None)

    def keep(self, request_ids: Container[str]) -> None:
        """Forgets all but these."""
        for request_id in [rid for rid in self._waits if rid not in request_ids]:
            del self._waits[request_id]

    def _begin(self, tokens: Uint32Array, namespace: Namespace | None) -> _Wait | None:
        if not tokens.size:
            return None
        until = time.monotonic() + self._seconds
        thread = self._calls.begin(lambda: self._load(tokens, namespace, until))
        return None if thread is None else _Wait(thread, until)

    def _load(
        self, tokens: Uint32Array, namespace: Namespace | None, until: float
    ) -> None:
        """Neither match counts as a use, or as a hit: the one that follows does."""
        try:
            found = self._client.match_prefix(
                tokens, namespace=namespace, touch=False, load=Load.START
            )
            left = until - time.monotonic()
            if not found.loadable_tokens or left <= 0:
                return
            loaded = self._client.match_prefix(
                tokens, namespace=namespace, touch=False, lock=True, pending_wait=left
            )
        except PandoError as error:
            _log.warning("pandod: %s; not waiting for its tier", error)
            return
        # Without an answer the client goes on asking.
        with contextlib.suppress(PandoError):
            if loaded.lock is not None:
                self._client.unlock(loaded.lock)
