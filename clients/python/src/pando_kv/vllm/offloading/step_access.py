"""Calls of a scheduler's steps, none of which may stand still."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pando_kv import Client
from pando_kv.errors import AwayError, DrainingError, PandoError

T = TypeVar("T")

_log = logging.getLogger("pando_kv.vllm")

# Seconds that all calls of a step may take. One more call may begin before they are
# over, and takes CALL_SECONDS at most.
_STEP_SECONDS = 0.02
# Seconds that one call may take; then pandod is away, and is not asked until it answers
# a thread that looks out for it.
CALL_SECONDS = 0.01


class StepAccess:
    """A client whose failures are misses. The scheduler's thread alone calls it."""

    def __init__(self, client: Client) -> None:
        """`client` has `away_after`."""
        self.client = client
        self._left = _STEP_SECONDS
        self._later: list[Callable[[], object]] = []
        self._said = ""

    def begin_step(self) -> None:
        self._left = _STEP_SECONDS
        while self._later and self.has_time:
            self.ask(self._later.pop(0))

    @property
    def is_behind(self) -> bool:
        """Whether calls wait for the next step."""
        return bool(self._later)

    @property
    def has_time(self) -> bool:
        """Whether this step may make one more call."""
        return self._left > 0

    def ask(self, call: Callable[[], T]) -> T | None:
        """The answer; None where there is none."""
        begun = time.monotonic()
        try:
            return call()
        except (AwayError, DrainingError):
            return None
        except PandoError as error:
            if error.reason != self._said:
                _log.warning("pandod: %s; going on without it", error)
            self._said = error.reason
            return None
        finally:
            self._left -= time.monotonic() - begun

    def give_back(self, call: Callable[[], object]) -> None:
        """A call that brings nothing, in a later step if this one has no time. While
        pandod is away, or without an answer, the client makes it later."""
        if self.has_time:
            self.ask(call)
        else:
            self._later.append(call)
