"""A call as data, and the rules by which it is sent, repeated and given up.

The synchronous and the asyncio client differ only in how they send and wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc

from pando_kv._locks import LockHandle
from pando_kv._proto.pando.v1 import prefix_cache_pb2, types_pb2
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
_PAUSES = (0.02, 0.04, 0.08, 0.16, 0.32)
_MAX_MILLISECONDS = 2**32 - 1
# Names of gRPC's codes, with which a connection breaks.
_NO_ANSWER = ("UNAVAILABLE", "CANCELLED")


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    # Not shown: tracebacks must not carry tokens.
    request: bytes = field(repr=False)
    parse: Callable[[bytes], T]
    # Locks that the call releases, claimed by it.
    releases: Sequence[LockHandle] = ()
    # Where the request carries a request id, which makes it safe to repeat: the
    # session that the id belongs to.
    repeats_in: Session | None = None
    # For a call that brings locks or pages: the call that gives those back.
    give_back: Callable[[T], Call[Any]] | None = None
    # Seconds that the server may wait for a page that another call computes.
    pending_wait: float = 0.0
    # The same call from the start of the prompt, if this one begins at a handle;
    # always the same object, for it has a request id of its own.
    whole: Callable[[], Call[T]] | None = None


class Attempts(Generic[T]):
    """One call on its way to an answer; all attempts share one deadline."""

    def __init__(self, call: Call[T], sessions: SessionTracker, timeout: float) -> None:
        self._call = call
        self._sessions = sessions
        self._pauses = iter(_PAUSES)
        self._wait_end = time.monotonic() + min(
            call.pending_wait, _MAX_MILLISECONDS / 1000
        )
        self._deadline = self._wait_end + timeout

    @property
    def method(self) -> str:
        return self._call.method

    def parse(self, response: bytes) -> T:
        return self._call.parse(response)

    def next(self) -> tuple[bytes, float]:
        """What to send, and the seconds that it may take."""
        self._sessions.require_open()
        request = self._call.request
        if self._call.pending_wait > 0:
            request += _pending_wait_field(self._wait_end - time.monotonic())
        return request, self._deadline - time.monotonic()

    def pause_after(self, rpc_error: grpc.RpcError) -> float:
        """Seconds until the next attempt; raises the error if there is none."""
        error = from_rpc_error(rpc_error)
        if isinstance(error, HandleGoneError) and self._call.whole is not None:
            self._call = self._call.whole()
            return 0
        session = self._call.repeats_in
        if session is not None and _is_broken(error):
            self._sessions.require_current(session, "a call")
            pause = next(self._pauses, None)
            if pause is not None and time.monotonic() + pause < self._deadline:
                return pause
        raise error from rpc_error

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Around all attempts: locks that were not released are held again."""
        try:
            yield
        except (SessionLostError, UnknownLockError):
            raise
        except BaseException:
            for lock in self._call.releases:
                lock.restore()
            raise


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around a call that is made once."""
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


def is_unsettled(error: BaseException) -> bool:
    """Whether the server may have carried out the call that ended so."""
    if not isinstance(error, PandoError):
        return True  # cancelled, or interrupted
    return isinstance(error, DeadlineError) or _is_broken(error)


def _is_broken(error: PandoError) -> bool:
    """No answer of the server, as opposed to one that refuses the call."""
    return isinstance(error, UnavailableError) and error.reason in _NO_ANSWER


def _pending_wait_field(seconds: float) -> bytes:
    # Never zero, so that the answer to a wait that is over says so.
    milliseconds = max(1, math.ceil(seconds * 1000))
    message = prefix_cache_pb2.MatchPrefixRequest(
        pending_wait_ms=min(milliseconds, _MAX_MILLISECONDS)
    )
    return bytes(message.SerializeToString())


def namespace_message(namespace: Namespace | None) -> types_pb2.Namespace | None:
    if namespace is None:
        return None
    if not isinstance(namespace, Namespace):
        raise TypeError(
            f"namespace is a {type(namespace).__name__}; must be a pando_kv.Namespace"
        )
    return types_pb2.Namespace(
        extra_key=namespace.extra_key,
        cache_salt=namespace.cache_salt,
        bigram=namespace.bigram,
    )


def handle_message(handle: PrefixHandle | None) -> types_pb2.PrefixHandle | None:
    if handle is None:
        return None
    return types_pb2.PrefixHandle(
        epoch=handle.epoch, node=handle.node, tokens=handle.tokens
    )
