"""The state of a lock, common to the synchronous and the asyncio client."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence

from pando_kv._session import Session, SessionTracker
from pando_kv.errors import SessionLostError, UnknownLockError


class LockHandle:
    """A prefix kept from eviction; valid within the session that took it.

    Released once: by itself, by `unlock`, or by an insert with `unlock=True`.
    Dropping it while it is held warns; the server then keeps the lock until the
    session ends. Any thread may release it.
    """

    def __init__(
        self, sessions: SessionTracker, session: Session, lock_id: int, tokens: int
    ) -> None:
        self._sessions = sessions
        self.session = session
        self._mutex = threading.Lock()
        self._held = True
        self.lock_id = lock_id
        self.locked_tokens = tokens
        """Tokens from the start of the prompt that the lock protects."""

    @property
    def held(self) -> bool:
        """Whether the lock was not released. It may still be void: a session ends."""
        return self._held

    def __repr__(self) -> str:
        state = "held" if self._held else "released"
        return f"<{type(self).__name__} of {self.locked_tokens} tokens, {state}>"

    def __del__(self) -> None:
        if self._held and self._sessions.is_current(self.session):
            warnings.warn(
                f"{self!r} was never released",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    def require_held(self) -> None:
        self._sessions.require_current(self.session, "a lock")
        if not self._held:
            raise _released()

    def claim(self) -> bool:
        """Takes the right to release the lock; False if it was released already."""
        with self._mutex:
            if not self._held:
                return False
            self._sessions.require_current(self.session, "a lock")
            self._held = False
            return True

    def restore(self) -> None:
        """Gives the claim back: the lock was not released."""
        self._held = True


def claim_held(locks: Sequence[LockHandle]) -> list[LockHandle]:
    """Claims, all or nothing, those of the locks that are still held."""
    claimed: list[LockHandle] = []
    try:
        for lock in locks:
            if lock.claim():
                claimed.append(lock)
    except SessionLostError:
        for lock in claimed:
            lock.restore()
        raise
    return claimed


def claim_one(lock: LockHandle) -> list[LockHandle]:
    """Claims a lock that must be held."""
    if not lock.claim():
        raise _released()
    return [lock]


def _released() -> UnknownLockError:
    return UnknownLockError("LOCK_UNKNOWN", "the lock was released already")
