"""Matches that wait until a tier has loaded, or another engine has computed, what is
not cached."""

from __future__ import annotations

import contextlib
import logging
import threading
import time

from pando_kv import Client, Lock, Match, Namespace
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError

_log = logging.getLogger("pando_kv.vllm")

# Requests beyond these do not wait.
_MOST = 32
# In each step matches are waited for so long: one for which nothing is loaded is
# answered sooner.
_SECONDS_A_STEP = 0.005


class WaitingMatch:
    """One match, in a thread of its own, which no exit of the process waits for."""

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
        self.thread = threading.Thread(target=self._run, name="pando-match")
        self.thread.daemon = True
        self.thread.start()

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


class WaitingMatches:
    """Begins them; the scheduler's thread alone calls it. Those that nobody wants any
    more count until they are over."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._threads: list[threading.Thread] = []
        self._left = _SECONDS_A_STEP

    def begin_step(self) -> None:
        self._left = _SECONDS_A_STEP

    def begin(
        self, prompt: Uint32Array, namespace: Namespace | None
    ) -> WaitingMatch | None:
        """None: there is no room for one more."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) == _MOST:
            return None
        begun = time.monotonic()
        try:
            match = WaitingMatch(self._client, prompt, namespace, self._seconds)
        except RuntimeError as error:
            _log.warning("no thread to wait for pandod in: %s", error)
            return None
        self._threads.append(match.thread)
        match.thread.join(self._left)
        self._left = max(0.0, self._left - (time.monotonic() - begun))
        return match
