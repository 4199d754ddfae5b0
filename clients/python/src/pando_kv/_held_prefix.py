"""A lock that one thread takes for another, which may have given up meanwhile."""

from __future__ import annotations

import threading

from pando_kv._request_client import Lock


class HeldPrefix:
    """A caller that gets a lock from here releases it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._given_up = threading.Event()
        self._lock: Lock | None = None

    @property
    def is_there(self) -> bool:
        return self._lock is not None

    def put(self, lock: Lock) -> Lock | None:
        """Keeps it. Returns what is not needed: the lock before it, or, when it was
        given up, this one."""
        with self._mutex:
            if self._given_up.is_set():
                return lock
            before, self._lock = self._lock, lock
            return before

    def give_up(self) -> Lock | None:
        """Nothing is kept from now on."""
        with self._mutex:
            self._given_up.set()
            before, self._lock = self._lock, None
            return before

    def is_wanted_after(self, seconds: float) -> bool:
        return not self._given_up.wait(seconds)
