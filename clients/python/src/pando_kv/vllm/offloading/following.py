"""What is made anew for each session with pandod, by a thread of its own: mapping and
registering a memory takes seconds, and no step of an engine waits for that."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from pando_kv import Client
from pando_kv._session import Session

T = TypeVar("T")

_log = logging.getLogger("pando_kv.vllm")

# Seconds between two attempts.
_PAUSE = 0.05


class Following(Generic[T]):
    """Any thread may ask it. Owned by one side of the connector."""

    def __init__(
        self,
        client: Client,
        is_changed: threading.Event,
        make: Callable[[Session], T | None],
    ) -> None:
        """`make` is called by the thread until it returns something. `is_changed` is
        set when a session is lost (`on_session_lost` of the client)."""
        self._client = client
        self._make = make
        self._is_changed = is_changed
        self._is_closed = False
        # Of which session, after how many calls of renew().
        self._made: tuple[tuple[int, int], T] | None = None
        self._renewals = 0
        self._why: BaseException | None = None
        self._first = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="pando-follows", daemon=True
        )
        self._thread.start()

    @property
    def now(self) -> T | None:
        """What belongs to the present session; None while there is nothing."""
        made = self._made
        if made is None or made[0] != (self._client.generation, self._renewals):
            return None
        return made[1]

    def first(self, seconds: float) -> T:
        """The first one. Raises RuntimeError, which says why there is none."""
        self._first.wait(seconds)
        made = self._made
        if made is None:
            raise RuntimeError(
                f"pandod has given this engine no blocks within {seconds} s: "
                f"{self._why or 'not every rank has mapped its memory'}"
            ) from self._why
        return made[1]

    def renew(self) -> None:
        """Until it is made anew there is nothing."""
        self._renewals += 1
        self._is_changed.set()

    def close(self) -> None:
        self._is_closed = True
        self._is_changed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def _run(self) -> None:
        while not self._is_closed:
            self._is_changed.clear()
            if self._is_made():
                self._first.set()
                self._is_changed.wait()
            else:
                time.sleep(_PAUSE)
                self._is_changed.set()

    def _is_made(self) -> bool:
        try:
            session = self._client._sessions.current()
            wanted = session.generation, self._renewals
            if self._made is not None and self._made[0] == wanted:
                return True
            made = self._make(session)
        except Exception as error:
            if str(error) != str(self._why):
                _log.warning("pandod: %s; going on without blocks", error)
            self._why = error
            return False
        # What was made in the next session is not this one's.
        if made is None or self._client.generation != session.generation:
            return False
        self._why = None
        self._made = (wanted, made)
        return True
