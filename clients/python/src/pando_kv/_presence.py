"""The presence of pandod, for a client that must not wait for a pandod that does not
answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from pando_kv._call import Call, is_unsettled
from pando_kv.errors import PandoError

_log = logging.getLogger("pando_kv")

# The longest time, in seconds, that a step of an engine waits for pandod. A pandod that
# works is slower only if its whole machine stands still.
SCHEDULER_PATIENCE = 0.9
# Seconds between two checks whether pandod answers again.
_PAUSE = 0.1


class Presence:
    """The state "away" of pandod, which begins with a call that gets no answer. While
    pandod is away, calls of requests are not made, and one thread checks whether pandod
    answers again. Owned by a Connection; any thread may use it."""

    def __init__(
        self,
        away_after: float | None,
        answers: Callable[[], bool],
        closing: threading.Event,
    ) -> None:
        """Starts with pandod present. `away_after` is the timeout in seconds of the
        calls of requests; with None pandod never counts as away. `answers` makes such a
        call, and returns whether there was an answer. Once `closing` is set, no thread
        checks any more."""
        self.away_after = away_after
        self.is_away = False
        self._answers = answers
        self._closing = closing
        self._mutex = threading.Lock()
        self._put_off: list[Callable[[], None]] = []

    def missed(self, call: Call[Any], error: BaseException) -> None:
        """Records that the call has ended with this error. If the call got no answer,
        pandod is away from now on."""
        is_asked_for = self.away_after is not None and call.method.number
        is_missed = isinstance(error, PandoError) and is_unsettled(error)
        if not is_asked_for or not is_missed:
            return
        with self._mutex:
            if self.is_away:
                return
            threading.Thread(
                target=self._look_out, name="pando-lookout", daemon=True
            ).start()
            self.is_away = True
        _log.warning("pandod: %s; it is not asked until it answers again", error)

    def put_off(self, do: Callable[[], None]) -> bool:
        """Keeps `do` for later if pandod is away, and returns whether pandod is away.
        When pandod answers, the checking thread runs the kept functions in the order of
        these calls."""
        with self._mutex:
            if self.is_away:
                self._put_off.append(do)
            return self.is_away

    def _look_out(self) -> None:
        while not self._answers():
            self._closing.wait(_PAUSE)
        if self._closing.is_set():
            return
        with self._mutex:
            put_off, self._put_off = self._put_off, []
            self.is_away = False
        _log.warning("pandod answers again")
        for do in put_off:
            do()
