"""Waits of asyncio tasks for answers on a lane."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

# Seconds after which the watching thread looks at the lane again without a wake-up,
# because a lane may stop announcing its answers.
_LOOK = 0.1


class AnswerWaits:
    """The asyncio tasks that wait for answers on one lane. A lane has no descriptor
    that an event loop could watch, so a thread sleeps on the lane while any task waits.
    Owned by a Connection; used from its event loop, with a mutex against the thread."""

    def __init__(self, lane: Any) -> None:
        self.lane = lane
        self._loop = asyncio.get_running_loop()
        self._mutex = threading.Lock()
        self._waiting: list[tuple[Any, asyncio.Future[None]]] = []
        self._is_watched = False

    async def until_done(self, pending: Any, timeout: float) -> None:
        """Waits until the call has an outcome. Raises asyncio.TimeoutError after
        `timeout` seconds."""
        done = self._loop.create_future()
        with self._mutex:
            self._waiting.append((pending, done))
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(
                    target=self._watch, name="pando-lane", daemon=True
                ).start()
        # The call is in the list before the lane is told to wake the thread, so the
        # thread finds the call however early the answer comes.
        if pending.wake_lane():
            await asyncio.wait_for(done, timeout)

    def _watch(self) -> None:
        while True:
            seen = self.lane.answers
            with self._mutex:
                waiting, self._waiting = self._waiting, []
                for pending, done in waiting:
                    if done.done():  # the waiting task gave up
                        continue
                    if not pending.done():
                        self._waiting.append((pending, done))
                    elif not self._tell(done):
                        return
                if not self._waiting:
                    self._is_watched = False
                    return
            self.lane.await_answers(seen, _LOOK)

    def _tell(self, done: asyncio.Future[None]) -> bool:
        """Wakes the task of `done`. Returns False if the event loop is closed, because
        then no task waits any more."""
        try:
            self._loop.call_soon_threadsafe(_set, done)
        except RuntimeError:
            return False
        return True


def _set(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
