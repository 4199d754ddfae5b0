"""A call as data, and the rules by which it is sent, repeated and given up.

The synchronous and the asyncio client differ only in how they send and wait.
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

# Seconds between the attempts of a call whose connection breaks: most of one second,
# in which the connection is made again.
PAUSES = (0.02, 0.04, 0.08, 0.16, 0.32)
_MAX_MILLISECONDS = 2**32 - 1
# Names of gRPC's codes, with which a connection breaks.
_NO_ANSWER = ("UNAVAILABLE", "CANCELLED")


@dataclass(slots=True, eq=False, repr=False)
class Call(Generic[T]):
    """Not shown: tracebacks must not carry tokens."""

    method: Method
    request: Any
    """What the method's codec encodes."""
    parse: Callable[[Any], T]
    """From what it decodes."""
    answer_bytes: int = SMALL_ANSWER
    """The room that the answer may need on a lane."""
    releases: Sequence[LockHandle] = ()
    """Locks that the call releases, claimed by it."""
    moves: LockHandle | None = None
    """The lock that goes on to the end of what is inserted."""
    repeats_in: Session | None = None
    """Where the request carries a request id, which makes it safe to repeat: the
    session that the id belongs to."""
    only_gives_back: bool = False
    """Nothing depends on when it is made."""
    give_back: Callable[[T], Call[Any]] | None = None
    """For a call that brings locks or pages: the call that gives those back."""
    undo: Callable[[], Call[Any]] | None = None
    """The call that undoes this one, whether it was carried out or not; in place of
    repeating it once its caller has given it up."""
    unpublished: Callable[[], Call[Any]] | None = None
    """For a call that publishes after a lock: the call that frees the pages where the
    lock was gone before."""
    pending_wait: float = 0.0
    """Seconds that the server may wait for a page that another call computes."""
    whole: Callable[[], Call[T]] | None = None
    """The same call from the start of the prompt, if this one begins at a handle;
    always the same object, for it has a request id of its own."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Begun:
    """A call that the native module has put on the lane by itself, and that has no
    result there. A Call of the same arguments goes on with it."""

    session: Session
    request_id: int
    """By which the server knows the call; 0: by none."""
    answer: Any
    """Lane.call gives this in place of a result."""


class Attempts(Generic[T]):
    """One call on its way to an answer; all attempts share one deadline."""

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
        """The request to send, and the seconds that it may take."""
        self._sessions.require_open()
        now = time.monotonic()
        request = self.call.request
        if self._wait_end:
            request = request._replace(pending_wait_ms=_ms(self._wait_end - now))
        return request, self._deadline - now

    def pause_after(self, error: PandoError) -> float:
        """Seconds until the next attempt; raises the error if there is none."""
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
        """No attempt succeeded: locks that were not released are held again. Those of
        a call without an answer are not: it is repeated until it has one."""
        if is_unsettled(error):
            if self.call.moves is not None:
                self.call.moves.lose_end()
        elif not isinstance(error, (SessionLostError, UnknownLockError)):
            for lock in self.call.releases:
                lock.restore()


def with_id_of(begun: Begun | None, call: Call[T]) -> Call[T]:
    """A new call, by the id under which it has begun, if it has."""
    if begun is not None:
        call.request = call.request._replace(request_id=begun.request_id)
    return call


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around a call that is made once."""
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


def is_unsettled(error: BaseException) -> bool:
    """Whether the server may have carried out the call that ended so."""
    if isinstance(error, (TypeError, ValueError)):
        return False  # a value does not fit its field: nothing was sent
    if not isinstance(error, PandoError):
        return True  # cancelled, or interrupted
    return isinstance(error, DeadlineError) or is_broken(error)


def after_settling(call: Call[Any], error: PandoError) -> Call[Any] | None:
    """What is to be sent next to learn, or to mend, what became of a call."""
    if is_unsettled(error) or error.retry_after is not None:
        return call.undo() if call.undo is not None else call
    if isinstance(error, UnknownLockError) and call.unpublished is not None:
        return call.unpublished()
    return None


def is_broken(error: PandoError) -> bool:
    """No answer of the server, as opposed to one that refuses the call."""
    return isinstance(error, UnavailableError) and error.reason in _NO_ANSWER


def without_wait(call: Call[T]) -> Call[T]:
    """What is sent to learn what became of a call that waited: the same, but it waits
    for nothing, and loads nothing."""
    return replace(call, pending_wait=0.0, request=call.request._replace(load=0))


def first_request(call: Call[Any]) -> Any:
    """The first request of a call that has just been made."""
    if call.pending_wait <= 0:
        return call.request
    return call.request._replace(pending_wait_ms=_ms(call.pending_wait))


def _ms(seconds: float) -> int:
    """Never zero, so that the answer to a wait that is over says so."""
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
