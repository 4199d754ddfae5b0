"""The state of a lock, shared by the blocking and the asyncio client."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pando_kv._session import Session, SessionTracker
from pando_kv.errors import LockInDoubtError, PandoError, UnknownLockError
from pando_kv.results import PrefixHandle


class LockHandle:
    """A prefix that is kept from eviction, valid within the session that locked it.
    Owned by the caller that took the lock; any thread may release it.

    The lock is released once: by its own release(), by `unlock`, or by an insert with
    `unlock=True`. If the object is dropped while the lock is held, it warns, and pandod
    keeps the lock until the session ends.
    """

    # claim() deletes the attribute of the object, and reads then find this False.
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
        """The number of tokens from the start of the prompt that the lock protects."""
        self.handle = handle
        """The end of the locked prefix, for calls after the release; None if nothing
        matched."""

    @property
    def held(self) -> bool:
        """Whether the lock has not been released. A held lock may still be void,
        because its session has ended."""
        return self._held

    @property
    def is_in_doubt(self) -> bool:
        """Whether an insert that was to move the lock got no answer. The end of the
        lock is then unknown, and nothing more can be inserted after it."""
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
        """Raises UnknownLockError for a lock of another client, and SessionLostError
        for a lock of an earlier session."""
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
        """Takes the right to release the lock. Returns False if the lock was released
        already."""
        if not self._held:
            return False
        self.require_valid(sessions)
        try:
            del self._held  # only one thread succeeds
        except AttributeError:
            return False
        return True

    def move(self, tokens: int, handle: PrefixHandle | None) -> None:
        """Records that pandod has moved the lock this many tokens on."""
        self.locked_tokens += tokens
        self.handle = handle

    def restore(self) -> None:
        """Gives the claim back, because the lock was not released."""
        self._held = True


def claim_held(
    sessions: SessionTracker, locks: Sequence[LockHandle]
) -> list[LockHandle]:
    """Claims those of the locks that are still held, all or none, and returns them."""
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
    """Claims a lock, and returns it in a list. Raises UnknownLockError if the lock was
    released already."""
    if not lock.claim(sessions):
        raise _unknown("the lock was released already")
    return [lock]


def _unknown(message: str) -> UnknownLockError:
    return UnknownLockError("LOCK_UNKNOWN", message)
