"""Matches that wait until a tier has loaded what was evicted."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pando_kv import Client, Lock, Match, Namespace
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError

# A request beyond these is asked about later.
_MOST = 32
# A match for which nothing is loaded is answered sooner.
_SECONDS_AT_ONCE = 0.005


class WaitingMatches:
    """The matches under way, by request, each in a thread of its own.

    The scheduler's thread alone calls it, and waits for none of them.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(_MOST, "pando-match")
        self._under_way: dict[str, Future[Match[Lock]]] = {}

    @property
    def has_room(self) -> bool:
        return len(self._under_way) < _MOST

    def begin(
        self, request_id: str, prompt: Uint32Array, namespace: Namespace | None
    ) -> None:
        match = self._threads.submit(
            self._client.match_prefix,
            prompt,
            namespace=namespace,
            lock=True,
            pending_wait=self._seconds,
        )
        self._under_way[request_id] = match
        wait([match], timeout=_SECONDS_AT_ONCE)

    def has(self, request_id: str) -> bool:
        return request_id in self._under_way

    def is_over(self, request_id: str) -> bool:
        return self._under_way[request_id].done()

    def take(self, request_id: str) -> Match[Lock]:
        """One that is over; raises what it failed with."""
        return self._under_way.pop(request_id).result()

    def drop(self, request_id: str) -> None:
        """Nobody wants its answer any more."""
        match = self._under_way.pop(request_id, None)
        if match is not None:
            match.add_done_callback(self._unlock)

    def drop_all(self) -> None:
        for request_id in list(self._under_way):
            self.drop(request_id)

    def _unlock(self, match: Future[Match[Lock]]) -> None:
        if match.exception() is None and (lock := match.result().lock) is not None:
            # Without an answer the client goes on asking.
            with contextlib.suppress(PandoError):
                self._client.unlock(lock)
