"""A value that a background thread makes again for each session with pandod. Mapping
and registering memory takes seconds, and no step of an engine may wait for that."""

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
    """The value that belongs to the present session, and the thread that makes it. A
    PandoWorker or an EngineKinds owns it; any thread may call it."""

    def __init__(
        self,
        client: Client,
        is_changed: threading.Event,
        make: Callable[[Session], T | None],
    ) -> None:
        """Starts the thread, which calls `make` for each session until it returns
        something other than None. The client's `on_session_lost` sets `is_changed`."""
        self._client = client
        self._make = make
        self._is_changed = is_changed
        self._is_closed = False
        # The value, with the generation of its session and the number of calls of
        # renew() before it was made.
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
        """Returns the value of the present session; None while it is not made yet."""
        made = self._made
        if made is None or made[0] != (self._client.generation, self._renewals):
            return None
        return made[1]

    def first(self, seconds: float) -> T:
        """Waits for the first value and returns it. Raises RuntimeError, which gives
        the reason, if there is none within `seconds`."""
        self._first.wait(seconds)
        made = self._made
        if made is None:
            raise RuntimeError(
                f"pandod has given this engine no blocks within {seconds} s: "
                f"{self._why or 'not every rank has mapped its memory'}"
            ) from self._why
        return made[1]

    def renew(self) -> None:
        """Has the value made again. Until then `now` is None."""
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
        # A new session may have begun meanwhile; the value may be made of both.
        if made is None or self._client.generation != session.generation:
            return False
        self._why = None
        self._made = (wanted, made)
        return True
