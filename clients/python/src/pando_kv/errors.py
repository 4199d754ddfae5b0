"""The errors of the clients, one class for each reaction that a caller may choose."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

_DOMAIN = "pando"
_STATUS_DETAILS = "grpc-status-details-bin"


class PandoError(Exception):
    """The base class of all errors: a call failed and changed nothing, unless a
    subclass says otherwise.

    `reason` is pandod's stable name of the failure, or the name of the gRPC code if the
    failure did not come from pandod. `retry_after` is the time in seconds after which
    the call may be tried again, or None if pandod did not state one.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason, message, metadata, retry_after)
        self.reason = reason
        self.message = message
        self.metadata: Mapping[str, str] = metadata or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class InvalidRequestError(PandoError, ValueError):
    """The request can never succeed as it is."""


class NotAllowedError(PandoError):
    """The request does not fit the state of the cache or of the session."""


class PageNotOwnedError(NotAllowedError):
    """A page of the request is not reserved by this session."""


class LayoutMismatchError(NotAllowedError):
    """Worker and pandod disagree on the layout or the model of the pool, or on the
    sizes of a kind."""


class SessionLostError(NotAllowedError):
    """The session is over: drop every lock, page id and mapping obtained in that
    session.

    The client opens a new session by itself; `client.generation` is the number of the
    current session.
    """


class UnknownLockError(PandoError):
    """The lock is not held by this session."""


class LockMovedError(PandoError):
    """Two calls moved one lock at the same time. Try again."""


class LockInDoubtError(PandoError):
    """An insert that was to move the lock got no answer. Tokens after the lock could be
    cached under a wrong prefix, so the lock can only be released."""


class PoolExhaustedError(PandoError):
    """Too few pages are free or evictable. A retry can succeed when locks are released,
    but never for a request that is larger than the whole pool."""


class QuotaExceededError(PandoError):
    """The namespace's quota class is at its cap. A retry can succeed when requests of
    that class finish, but never for a request that is larger than the cap."""


class SessionLimitError(PandoError):
    """The session has its maximum of locks, reserved pages or unused attach tokens. A
    retry can succeed when the session has given some back."""


class RateLimitedError(PandoError):
    """The session calls too often; `retry_after` says when the next call is allowed."""


class HandleGoneError(PandoError):
    """The node of a prefix handle was evicted, or is of an earlier pandod. Clients do
    not raise this error; they send the whole prompt instead."""


class RequestIdReusedError(InvalidRequestError):
    """A request id was used for another kind of call; the clients never do that."""


class AccessDeniedError(PandoError):
    """pandod does not know the caller, or does not allow the call; `reason`
    says which."""


class UnavailableError(PandoError):
    """pandod cannot be reached, or is shutting down. The client keeps reconnecting.

    A call that changes something was repeated before this error was raised. pandod may
    have carried the call out nevertheless; then the same holds as after DeadlineError.
    """


class DrainingError(UnavailableError):
    """pandod is shutting down and admits nothing new. Admitted requests can be
    finished; the call changed nothing."""


class AwayError(UnavailableError):
    """pandod is away for a client with `away_after`, and the call was not made."""


class DeadlineError(PandoError):
    """There was no answer in time. pandod may still have carried out the call.

    The client repeats the call in the background until it is carried out or the session
    ends, and gives back the locks and pages that the call may have obtained. Locks and
    pages that the call was to release, publish or free no longer belong to the caller.
    """


_BY_REASON: dict[str, type[PandoError]] = {
    "DRAINING": DrainingError,
    "HANDLE_GONE": HandleGoneError,
    "LAYOUT_MISMATCH": LayoutMismatchError,
    "LOCK_MOVED": LockMovedError,
    "LOCK_UNKNOWN": UnknownLockError,
    "PAGE_NOT_OWNED": PageNotOwnedError,
    "POOL_EXHAUSTED": PoolExhaustedError,
    "QUOTA_EXCEEDED": QuotaExceededError,
    "RATE_LIMITED": RateLimitedError,
    "REQUEST_ID_REUSED": RequestIdReusedError,
    "SESSION_LIMIT": SessionLimitError,
    "SESSION_LOST": SessionLostError,
}

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_BY_CODE: dict[grpc.StatusCode, type[PandoError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.FAILED_PRECONDITION: NotAllowedError,
    grpc.StatusCode.UNAUTHENTICATED: AccessDeniedError,
    grpc.StatusCode.PERMISSION_DENIED: AccessDeniedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    # Comes from a pandod that shuts down, because the clients do not cancel such calls.
    grpc.StatusCode.CANCELLED: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
}


def from_rpc_error(error: grpc.RpcError) -> PandoError:
    """Returns the typed error of a failed call, blocking or asyncio."""
    return _typed(error.code(), error.details() or "", _details(error))


def _typed(
    code: grpc.StatusCode, message: str, details: list[any_pb2.Any]
) -> PandoError:
    info = _error_info(details)
    reason = info.reason if info else code.name
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, PandoError)
    return kind(
        reason,
        message,
        dict(info.metadata) if info else None,
        _retry_after(details),
    )


def from_status(data: bytes) -> PandoError:
    """Returns the typed error of a serialized google.rpc.Status, as a lane or a batch
    gives it."""
    status = status_pb2.Status.FromString(data)
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    return _typed(code, status.message, list(status.details))


def _details(error: grpc.RpcError) -> list[any_pb2.Any]:
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_DETAILS:
            return list(status_pb2.Status.FromString(value).details)
    return []


def _error_info(details: list[any_pb2.Any]) -> error_details_pb2.ErrorInfo | None:
    for detail in details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == _DOMAIN:
            return info
    return None


def _retry_after(details: list[any_pb2.Any]) -> float | None:
    for detail in details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            delay = info.retry_delay
            return float(delay.seconds + delay.nanos / 1e9)
    return None
