"""A match that waits until a tier has loaded, or another engine has computed, what is
not cached."""

from __future__ import annotations

import contextlib
import logging
import threading

from pando_kv import Client, Lock, Match, Namespace
from pando_kv._side_calls import SideCalls
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError

_log = logging.getLogger("pando_kv.vllm")


class WaitingMatch:
    """One match, in a thread of its own. Owned by the request that wants it."""

    def __init__(
        self,
        client: Client,
        prompt: Uint32Array,
        namespace: Namespace | None,
        seconds: float,
    ) -> None:
        self._client = client
        self._prompt = prompt
        self._namespace = namespace
        self._seconds = seconds
        self._mutex = threading.Lock()
        self._match: Match[Lock] | None = None
        self._is_wanted = True
        self._thread: threading.Thread | None = None

    def begin(self, calls: SideCalls) -> bool:
        """Whether there is room for one more."""
        self._thread = calls.begin(self._run)
        return self._thread is not None

    @property
    def is_under_way(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def take(self) -> Match[Lock] | None:
        """What was found. None where nothing was, or is yet: what is found later is
        unlocked by the thread."""
        with self._mutex:
            self._is_wanted = False
            return self._match

    def _run(self) -> None:
        try:
            match = self._client.match_prefix(
                self._prompt,
                namespace=self._namespace,
                lock=True,
                pending_wait=self._seconds,
            )
        except PandoError as error:
            _log.warning("pandod: %s; not waiting for it", error)
            return
        with self._mutex:
            self._match = match
            is_wanted = self._is_wanted
        if not is_wanted and match.lock is not None:
            # Without an answer the client goes on asking.
            with contextlib.suppress(PandoError):
                self._client.unlock(match.lock)
