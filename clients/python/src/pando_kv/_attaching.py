"""Repetition of an attach: a call that returns a token, and the exchange of the token
for memory at the memory socket."""

from __future__ import annotations

import time

from pando_kv._call import PAUSES, is_broken
from pando_kv._memory_socket import UNANSWERED
from pando_kv._session import SessionTracker
from pando_kv.errors import PandoError, UnavailableError


class Repeats:
    """The repetitions of one attach after pandod has died before it answered. Owned by
    the thread or task that attaches."""

    def __init__(self, sessions: SessionTracker, timeout: float) -> None:
        self._sessions = sessions
        self._session = sessions.current()
        self._pauses = iter(PAUSES)
        self._deadline = time.monotonic() + timeout

    def pause_after(self, error: PandoError) -> float:
        """Returns the seconds until the next attempt. Raises the error if there is no
        further attempt."""
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
