"""The state of a lock, common to the synchronous and the asyncio client."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pando_kv._session import Session, SessionTracker
from pando_kv.errors import LockInDoubtError, PandoError, UnknownLockError
from pando_kv.results import PrefixHandle


class LockHandle:
    """A prefix kept from eviction; valid within the session that took it.

    Released once: by itself, by `unlock`, or by an insert with `unlock=True`.
    Dropping it while it is held warns; the server then keeps the lock until the
    session ends. Any thread may release it.
    """

    # So it is where the object's own attribute was taken: see claim().
    _held = False

    def __init__(
        self,
        sessions: SessionTracker,
        session: Session,
        lock_id: int,
        tokens: int,
        handle: PrefixHandle | None,
    ) -> None:
        self._sessions = sessions
        self.session = session
        self._held = True
        self._is_in_doubt = False
        self.lock_id = lock_id
        self.locked_tokens = tokens
        """Tokens from the start of the prompt that the lock protects."""
        self.handle = handle
        """Where it ends, for calls after its release; None when nothing matched."""

    @property
    def held(self) -> bool:
        """Whether the lock was not released. It may still be void: a session ends."""
        return self._held

    @property
    def is_in_doubt(self) -> bool:
        """An insert that was to move it got no answer: its end is unknown, and nothing
        more can be inserted after it."""
        return self._is_in_doubt

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

    def require_valid(self, sessions: SessionTracker) -> None:
        """Refuses a lock that is not of the current session of this client."""
        if self._sessions is not sessions:
            raise _unknown("the lock is another client's")
        sessions.require_current(self.session, "a lock")

    def require_held(self, sessions: SessionTracker) -> None:
        self.require_valid(sessions)
        if not self._held:
            raise _unknown("the lock was released already")

    def require_known_end(self) -> None:
        if self._is_in_doubt:
            raise LockInDoubtError(
                "LOCK_IN_DOUBT",
                "an insert that was to move the lock got no answer: it can only be "
                "released",
            )

    def lose_end(self) -> None:
        self._is_in_doubt = True

    def claim(self, sessions: SessionTracker) -> bool:
        """Takes the right to release the lock; False if it was released already."""
        if not self._held:
            return False
        self.require_valid(sessions)
        try:
            del self._held  # only one thread can
        except AttributeError:
            return False
        return True

    def move(self, tokens: int, handle: PrefixHandle | None) -> None:
        """The server moved it, this many tokens on."""
        self.locked_tokens += tokens
        self.handle = handle

    def restore(self) -> None:
        """Gives the claim back: the lock was not released."""
        self._held = True


def claim_held(
    sessions: SessionTracker, locks: Sequence[LockHandle]
) -> list[LockHandle]:
    """Claims, all or nothing, those of the locks that are still held."""
    claimed: list[LockHandle] = []
    try:
        for lock in locks:
            if lock.claim(sessions):
                claimed.append(lock)
    except PandoError:
        for lock in claimed:
            lock.restore()
        raise
    return claimed


def claim_one(sessions: SessionTracker, lock: LockHandle) -> list[LockHandle]:
    """Claims a lock that must be held."""
    if not lock.claim(sessions):
        raise _unknown("the lock was released already")
    return [lock]


def _unknown(message: str) -> UnknownLockError:
    return UnknownLockError("LOCK_UNKNOWN", message)
