"""How long a step of the scheduler waits for pandod."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class StepBudget:
    """The questions of one step take so many seconds together, and the last one as long
    again at most: one that pandod does not answer ends by itself. The scheduler's
    thread alone uses it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._spent = 0.0

    def begin_step(self) -> None:
        self._spent = 0.0

    def ask(self, question: Callable[[], T | None]) -> T | None:
        """Its answer; None also where the step has waited enough."""
        if self._spent >= self._seconds:
            return None
        begin = time.monotonic()
        try:
            return question()
        finally:
            self._spent += time.monotonic() - begin
