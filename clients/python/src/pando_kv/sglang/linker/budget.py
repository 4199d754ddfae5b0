"""The limit on how long a step of the scheduler waits for pandod."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class StepBudget:
    """A limit, in seconds, on the time that the questions of one step take together. A
    question may start until the limit is reached. An unanswered question ends by itself
    after as long again, so a step waits for at most twice the limit. Owned by
    PandoLinker; the scheduler's thread alone uses it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._spent = 0.0

    def begin_step(self) -> None:
        self._spent = 0.0

    def ask(self, question: Callable[[], T | None]) -> T | None:
        """Returns the answer to the question. Returns None without asking if the step
        has used up its limit."""
        if self._spent >= self._seconds:
            return None
        begin = time.monotonic()
        try:
            return question()
        finally:
            self._spent += time.monotonic() - begin
