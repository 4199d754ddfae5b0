"""Calls to pandod that a scheduler makes in its steps, within a time limit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pando_kv import Client
from pando_kv.errors import AwayError, DrainingError, PandoError

T = TypeVar("T")

_log = logging.getLogger("pando_kv.vllm")

# Seconds that all calls of one step may take together. A call that begins before they
# are used up may take CALL_SECONDS more.
_STEP_SECONDS = 0.02
# Seconds that one call may take. A call that takes longer fails, and pandod counts as
# away: the client makes no calls until pandod answers the client's look-out thread.
CALL_SECONDS = 0.01


class StepAccess:
    """Access to a client for steps that must not wait: a call that fails gives None.
    SharedBlocks owns it; the scheduler's thread alone calls it."""

    def __init__(self, client: Client) -> None:
        """Takes a client that was made with `away_after`."""
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
        """Returns whether calls wait for the next step."""
        return bool(self._later)

    @property
    def has_time(self) -> bool:
        """Returns whether this step may make one more call."""
        return self._left > 0

    def ask(self, call: Callable[[], T]) -> T | None:
        """Makes the call and returns its answer; None if the call fails."""
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
        """Makes a call whose answer is not needed, in a later step if this one has no
        time left. If pandod is away, the client makes it later; if pandod does not
        answer, the client repeats it."""
        if self.has_time:
            self.ask(call)
        else:
            self._later.append(call)
