"""Attaching: a call for a token, which is then shown at the memory socket."""

from __future__ import annotations

import time

from pando_kv._call import PAUSES, is_broken
from pando_kv._memory_socket import UNANSWERED
from pando_kv._session import SessionTracker
from pando_kv.errors import PandoError, UnavailableError


class Repeats:
    """When both are done again, because pandod has died before it answered."""

    def __init__(self, sessions: SessionTracker, timeout: float) -> None:
        self._sessions = sessions
        self._session = sessions.current()
        self._pauses = iter(PAUSES)
        self._deadline = time.monotonic() + timeout

    def pause_after(self, error: PandoError) -> float:
        """Seconds until the next attempt; raises the error if there is none."""
        is_unanswered = isinstance(error, UnavailableError) and (
            is_broken(error) or error.reason == UNANSWERED
        )
        if not is_unanswered:
            raise error
        self._sessions.require_current(self._session, "an attach")
        pause = next(self._pauses, None)
        if pause is None or time.monotonic() + pause >= self._deadline:
            raise error
        return pause
