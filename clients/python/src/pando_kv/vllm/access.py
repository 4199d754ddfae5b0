"""Calls that may fail without harm."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pando_kv import Client
from pando_kv._session import Session
from pando_kv.errors import (
    DeadlineError,
    DrainingError,
    PandoError,
    UnavailableError,
)

T = TypeVar("T")

_log = logging.getLogger("pando_kv.vllm")

# While pandod does not answer it is left alone, ever longer.
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 10.0


class Access:
    """A client whose failures are misses: an engine goes on without its cache.

    One thread at a time calls it; what is given back may go by a thread of its own.
    """

    def __init__(
        self, client: Client, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.client = client
        self._clock = clock
        self._pause = _FIRST_PAUSE
        self._closed_until = 0.0
        self._later = ThreadPoolExecutor(1, "pando-give-back")

    @property
    def is_open(self) -> bool:
        """Whether pandod is asked at all."""
        return self._clock() >= self._closed_until

    @property
    def session(self) -> Session | None:
        """The present one; None while there is none."""
        try:
            return self.client._sessions.current()
        except UnavailableError:
            return None

    def is_present(self, generation: int) -> bool:
        """Whether locks and pages of that session are not void."""
        session = self.session
        return session is not None and session.generation == generation

    def ask(self, call: Callable[[Client], T]) -> T | None:
        """The answer; None where there is none, at once while pandod is away."""
        if not self.is_open:
            return None
        try:
            answer = call(self.client)
        except DrainingError:
            # It answers, and serves what it has admitted. What waits asks in each
            # step; the log would have a line for each.
            return None
        except (UnavailableError, DeadlineError) as error:
            self._closed_until = self._clock() + self._pause
            _log.warning("pandod: %s; no cache for %.1f s", error, self._pause)
            self._pause = min(2 * self._pause, _MAX_PAUSE)
            return None
        except PandoError as error:
            _log.warning("pandod: %s; going on without it", error)
            return None
        self._pause = _FIRST_PAUSE
        return answer

    def give_back(self, call: Callable[[Client], object]) -> None:
        """A call that releases locks or frees pages. It is made while pandod is away,
        too: what it is about would be others' again only when the session ends."""
        if self.is_open:
            self.ask(call)
        else:
            self._later.submit(self._give_back_later, call)

    def _give_back_later(self, call: Callable[[Client], object]) -> None:
        try:
            call(self.client)
        except PandoError as error:
            _log.warning("pandod: %s", error)
