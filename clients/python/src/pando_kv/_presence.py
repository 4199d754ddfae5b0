"""Whether pandod answers, for a client that must not wait for one that does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from pando_kv._call import Call, is_unsettled
from pando_kv.errors import PandoError

_log = logging.getLogger("pando_kv")

# Seconds that a step of an engine waits for pandod, at most: one that answers is slower
# only where its machine stands still.
SCHEDULER_PATIENCE = 0.9
# Seconds between two looks whether pandod answers again.
_PAUSE = 0.1


class Presence:
    """From a call without an answer on, pandod is away: calls of requests are not made,
    and one thread looks out for it. Owned by a Connection; any thread may use it."""

    def __init__(
        self,
        away_after: float | None,
        answers: Callable[[], bool],
        closing: threading.Event,
    ) -> None:
        """`away_after` is the timeout of the calls of requests; None: pandod is never
        away. `answers` makes such a call, and says whether there was an answer. Once
        `closing` is set no thread looks out any more."""
        self.away_after = away_after
        self.is_away = False
        self._answers = answers
        self._closing = closing
        self._mutex = threading.Lock()
        self._put_off: list[Callable[[], None]] = []

    def missed(self, call: Call[Any], error: BaseException) -> None:
        """The call has ended with this error: it may have had no answer."""
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
        """While pandod is away: `do` is done when it answers, by the thread that looks
        out, in the order of these calls. False: it is not away."""
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
