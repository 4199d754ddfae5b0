"""A call as data, with the rules for sending, repeating and giving it up.

The blocking and the asyncio client share them, and differ only in how they send and
wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import grpc

from pando_kv._locks import LockHandle
from pando_kv._methods import SMALL_ANSWER, Method
from pando_kv._proto.pando.v1 import types_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv.errors import (
    DeadlineError,
    HandleGoneError,
    PandoError,
    SessionLostError,
    UnavailableError,
    UnknownLockError,
    from_rpc_error,
)
from pando_kv.results import Namespace, PrefixHandle

T = TypeVar("T")

# Seconds between the attempts of a call after its connection breaks. The pauses add up
# to most of a second, in which the connection is made again.
PAUSES = (0.02, 0.04, 0.08, 0.16, 0.32)
_MAX_MILLISECONDS = 2**32 - 1
# Names of the gRPC codes that a broken connection gives.
_NO_ANSWER = ("UNAVAILABLE", "CANCELLED")


@dataclass(slots=True, eq=False, repr=False)
class Call(Generic[T]):
    """One call to pandod: its request, and the ways to parse, repeat and undo the call.
    Owned by the thread or task that makes the call. The class has no repr, because
    tracebacks must not show tokens."""

    method: Method
    request: Any
    """The values that the method's request codec encodes."""
    parse: Callable[[Any], T]
    """Makes the result from the values that the method's response codec decodes."""
    answer_bytes: int = SMALL_ANSWER
    """The room on a lane, in bytes, that the answer may need."""
    releases: Sequence[LockHandle] = ()
    """Locks that the call releases, and has claimed for that."""
    moves: LockHandle | None = None
    """The lock that an insert moves to the end of the inserted tokens."""
    repeats_in: Session | None = None
    """The session in which the call is safe to repeat, because its request carries a
    request id or a name that the client chose; None: it is not repeated."""
    only_gives_back: bool = False
    """Whether the call may be made later, because it only releases, frees, discards or
    publishes, and its caller needs no answer."""
    give_back: Callable[[T], Call[Any]] | None = None
    """Makes the call that gives back the locks or pages which this call obtained."""
    undo: Callable[[], Call[Any]] | None = None
    """Makes the call that undoes this one, whether pandod carried this one out or not.
    The undoing call is sent, in place of a repetition, after the caller has given this
    call up."""
    unpublished: Callable[[], Call[Any]] | None = None
    """Makes the call that frees the pages of an insert after a lock, if pandod did not
    know the lock."""
    pending_wait: float = 0.0
    """Seconds that pandod may wait for a page that another call computes."""
    whole: Callable[[], Call[T]] | None = None
    """Makes the same call from the start of the prompt, if this one begins at a handle.
    Returns the same object each time, because that call has a request id of its own."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Begun:
    """A call that the native module has put on the lane, but for which it has no
    result. A Call with the same arguments takes over from there."""

    session: Session
    request_id: int
    """The request id of the call; 0 if it has none."""
    answer: Any
    """The object that the native Lane.call returned in place of a result."""


class Attempts(Generic[T]):
    """The attempts of one call, which share one deadline. Owned by the thread or task
    that makes the call."""

    __slots__ = ("_deadline", "_pauses", "_sessions", "_wait_end", "call")

    def __init__(self, call: Call[T], sessions: SessionTracker, timeout: float) -> None:
        self.call = call
        self._sessions = sessions
        self._pauses: Iterator[float] | None = None
        self._deadline = time.monotonic() + timeout
        self._wait_end = 0.0
        if call.pending_wait > 0:
            wait = min(call.pending_wait, _MAX_MILLISECONDS / 1000)
            self._wait_end = time.monotonic() + wait
            self._deadline += wait

    def next(self) -> tuple[Any, float]:
        """Returns the request to send, and the seconds that its answer may take. Raises
        UnavailableError if the client is closed."""
        self._sessions.require_open()
        now = time.monotonic()
        request = self.call.request
        if self._wait_end:
            request = request._replace(pending_wait_ms=_ms(self._wait_end - now))
        return request, self._deadline - now

    def pause_after(self, error: PandoError) -> float:
        """Returns the seconds until the next attempt. Raises the error if there is no
        further attempt."""
        if isinstance(error, HandleGoneError) and self.call.whole is not None:
            self.call = self.call.whole()
            return 0
        session = self.call.repeats_in
        if session is not None and is_broken(error):
            self._sessions.require_current(session, "a call")
            if self._pauses is None:
                self._pauses = iter(PAUSES)
            pause = next(self._pauses, None)
            if pause is not None and time.monotonic() + pause < self._deadline:
                return pause
        raise error

    def failed(self, error: BaseException) -> None:
        """Updates the locks of a call for which no attempt succeeded. Locks that pandod
        did not release are held again. If the call has no answer, its locks stay
        claimed, because the call is repeated in the background until it has one."""
        if is_unsettled(error):
            if self.call.moves is not None:
                self.call.moves.lose_end()
        elif not isinstance(error, (SessionLostError, UnknownLockError)):
            for lock in self.call.releases:
                lock.restore()


def with_id_of(begun: Begun | None, call: Call[T]) -> Call[T]:
    """Gives the call the request id of the begun call, if there is one, and
    returns it."""
    if begun is not None:
        call.request = call.request._replace(request_id=begun.request_id)
    return call


@contextmanager
def typed_errors() -> Iterator[None]:
    """Turns gRPC errors of a call that is made once into PandoErrors."""
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


def is_unsettled(error: BaseException) -> bool:
    """Returns whether pandod may have carried out the call that ended with this
    error."""
    if isinstance(error, (TypeError, ValueError)):
        return False  # a value does not fit its field, so nothing was sent
    if not isinstance(error, PandoError):
        return True  # cancelled or interrupted
    return isinstance(error, DeadlineError) or is_broken(error)


def after_settling(call: Call[Any], error: PandoError) -> Call[Any] | None:
    """Returns the call to send next to learn the outcome of a call, or to undo it; None
    if nothing is left to do."""
    if is_unsettled(error) or error.retry_after is not None:
        return call.undo() if call.undo is not None else call
    if isinstance(error, UnknownLockError) and call.unpublished is not None:
        return call.unpublished()
    return None


def is_broken(error: PandoError) -> bool:
    """Returns whether the connection broke, so that pandod gave no answer; a refusal by
    pandod is an answer."""
    return isinstance(error, UnavailableError) and error.reason in _NO_ANSWER


def without_wait(call: Call[T]) -> Call[T]:
    """Returns the call that asks for the outcome of a waiting call: the same call, but
    without waiting and loading."""
    return replace(call, pending_wait=0.0, request=call.request._replace(load=0))


def first_request(call: Call[Any]) -> Any:
    """Returns the first request of a call that was just made."""
    if call.pending_wait <= 0:
        return call.request
    return call.request._replace(pending_wait_ms=_ms(call.pending_wait))


def _ms(seconds: float) -> int:
    """Returns whole milliseconds, at least 1: with 0, pandod would report NOT_AWAITED
    in place of TIMED_OUT after the wait has passed."""
    milliseconds = min(seconds * 1000, _MAX_MILLISECONDS)
    return max(1, math.ceil(milliseconds))


def namespace_values(namespace: Namespace | None) -> tuple[Any, ...] | None:
    if namespace is None:
        return None
    if not isinstance(namespace, Namespace):
        raise TypeError(
            f"namespace is a {type(namespace).__name__}; must be a pando_kv.Namespace"
        )
    return namespace.extra_key, namespace.cache_salt, namespace.bigram


def namespace_message(namespace: Namespace | None) -> types_pb2.Namespace | None:
    values = namespace_values(namespace)
    if values is None:
        return None
    extra_key, cache_salt, bigram = values
    return types_pb2.Namespace(
        extra_key=extra_key, cache_salt=cache_salt, bigram=bigram
    )


def handle_values(handle: PrefixHandle | None) -> tuple[Any, ...] | None:
    return (handle.epoch, handle.node, handle.tokens) if handle else None
