"""A device that does copies late, in the place of a GPU's stream, which is not there.

A copy is done when it has been asked often enough whether it is over, or when a step has
to come after it: a step that reads or writes too early has the wrong bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

NEVER = 1 << 30


class LateStream:
    def __init__(self, late: int = 0) -> None:
        self.late = late  # questions that are answered with no
        self.waited_for = 0  # copies that a step had to come after
        self._under_way: deque[LateEvent] = deque()

    def begin_step(self) -> None:
        pass

    def load(self, copies: Callable[[], None]) -> LateEvent:
        event = LateEvent(self, copies)
        self._under_way.append(event)
        return event

    save = load

    def finish(self, event: LateEvent) -> None:
        """With all that was queued before."""
        while not event.is_over:
            first = self._under_way.popleft()
            first.copies()
            first.is_over = True


class LateEvent:
    def __init__(self, stream: LateStream, copies: Callable[[], None]) -> None:
        self.copies = copies
        self.is_over = False
        self._stream = stream
        self._asked = 0

    def query(self) -> bool:
        self._asked += 1
        if self._asked > self._stream.late:
            self._stream.finish(self)
        return self.is_over

    def wait(self) -> None:
        self._stream.waited_for += not self.is_over
        self._stream.finish(self)

    def synchronize(self) -> None:
        self._stream.finish(self)
