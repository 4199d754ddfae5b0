"""A lock that one thread takes for another thread, which may have given up
meanwhile."""

from __future__ import annotations

import threading

from pando_kv._request_client import Lock


class HeldPrefix:
    """A slot for one lock, shared by the thread that takes the lock and the thread that
    wants it. Any thread may use it. A caller that gets a lock from a method must
    release that lock."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._given_up = threading.Event()
        self._lock: Lock | None = None

    @property
    def is_there(self) -> bool:
        return self._lock is not None

    def put(self, lock: Lock) -> Lock | None:
        """Keeps the lock. Returns the lock that is no longer needed: the one kept
        before or, after give_up(), this one."""
        with self._mutex:
            if self._given_up.is_set():
                return lock
            before, self._lock = self._lock, lock
            return before

    def give_up(self) -> Lock | None:
        """Keeps no lock from now on. Returns the lock that was kept, if any."""
        with self._mutex:
            self._given_up.set()
            before, self._lock = self._lock, None
            return before

    def is_wanted_after(self, seconds: float) -> bool:
        """Waits up to `seconds`, and returns whether give_up() has not been called by
        then."""
        return not self._given_up.wait(seconds)
