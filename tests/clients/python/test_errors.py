"""Errors of failed calls, which the reason or else the code of the status selects."""

import asyncio
import pickle
from concurrent import futures

import grpc
import pando_kv
import pytest
from google.rpc import error_details_pb2, status_pb2
from pando_kv.errors import from_rpc_error

METHOD = "/errors.Server/Fail"

CASES = [
    ("INVALID_ARGUMENT", "INVALID_ALIGNMENT", pando_kv.InvalidRequestError),
    ("INVALID_ARGUMENT", "DUPLICATE_PAGE", pando_kv.InvalidRequestError),
    ("INVALID_ARGUMENT", "NAMESPACE_MISMATCH", pando_kv.InvalidRequestError),
    ("FAILED_PRECONDITION", "PAGE_NOT_OWNED", pando_kv.PageNotOwnedError),
    ("FAILED_PRECONDITION", "SESSION_LOST", pando_kv.SessionLostError),
    ("FAILED_PRECONDITION", "LAYOUT_MISMATCH", pando_kv.LayoutMismatchError),
    ("FAILED_PRECONDITION", "A_LATER_REASON", pando_kv.NotAllowedError),
    ("INVALID_ARGUMENT", "REQUEST_ID_REUSED", pando_kv.RequestIdReusedError),
    ("NOT_FOUND", "HANDLE_GONE", pando_kv.HandleGoneError),
    ("NOT_FOUND", "LOCK_UNKNOWN", pando_kv.UnknownLockError),
    ("ABORTED", "LOCK_MOVED", pando_kv.LockMovedError),
    ("RESOURCE_EXHAUSTED", "POOL_EXHAUSTED", pando_kv.PoolExhaustedError),
    ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", pando_kv.QuotaExceededError),
    ("RESOURCE_EXHAUSTED", "SESSION_LIMIT", pando_kv.SessionLimitError),
    ("RESOURCE_EXHAUSTED", "RATE_LIMITED", pando_kv.RateLimitedError),
    ("UNAVAILABLE", "DRAINING", pando_kv.DrainingError),
    ("INTERNAL", "INTERNAL", pando_kv.PandoError),
]


def _fail(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Fails with the code, reason and ErrorInfo domain that the request names."""
    code, reason, domain = request.decode().split()
    status = status_pb2.Status(message="why")
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(
            reason=reason, domain=domain, metadata={"limit": "7"}
        )
    )
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(1250)
    status.details.add().Pack(retry)
    context.set_trailing_metadata(
        [("grpc-status-details-bin", status.SerializeToString())]
    )
    context.abort(grpc.StatusCode[code], "why")
    raise AssertionError("abort raises")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service, method = METHOD[1:].split("/")
    handler = grpc.method_handlers_generic_handler(
        service, {method: grpc.unary_unary_rpc_method_handler(_fail)}
    )
    server.add_generic_rpc_handlers((handler,))
    address = f"unix:{tmp_path_factory.mktemp('errors')}/sock"
    server.add_insecure_port(address)
    server.start()
    yield address
    server.stop(None).wait()


def _call(address: str, request: str) -> pando_kv.PandoError:
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(METHOD)(request.encode(), timeout=10)
        except grpc.RpcError as error:
            return from_rpc_error(error)
    raise AssertionError("the call succeeded")


async def _call_async(address: str, request: str) -> pando_kv.PandoError:
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            await channel.unary_unary(METHOD)(request.encode(), timeout=10)
        except grpc.RpcError as error:
            return from_rpc_error(error)
    raise AssertionError("the call succeeded")


@pytest.mark.parametrize(("code", "reason", "kind"), CASES)
def test_a_reason_gives_its_error_class(address, code, reason, kind):
    error = _call(address, f"{code} {reason} pando")
    assert type(error) is kind
    assert error.reason == reason
    assert error.message == "why"
    assert error.metadata == {"limit": "7"}
    assert error.retry_after == 1.25
    assert str(error) == f"{reason}: why"


@pytest.mark.parametrize(("code", "reason", "kind"), CASES)
def test_a_reason_gives_the_same_error_class_with_asyncio(address, code, reason, kind):
    error = asyncio.run(_call_async(address, f"{code} {reason} pando"))
    assert (type(error), error.reason) == (kind, reason)


def test_details_of_another_domain_are_not_read_as_reasons(address):
    error = _call(address, "NOT_FOUND SESSION_LOST elsewhere.example")
    assert type(error) is pando_kv.PandoError
    assert error.reason == "NOT_FOUND"


def test_an_absent_server_is_unavailable(tmp_path):
    error = _call(f"unix:{tmp_path}/nobody", "x x x")
    assert type(error) is pando_kv.UnavailableError
    assert error.retry_after is None
    assert error.reason == "UNAVAILABLE"


def test_a_call_that_a_server_cut_off_as_it_ended_is_unavailable(address):
    error = _call(address, "CANCELLED x elsewhere.example")
    assert type(error) is pando_kv.UnavailableError
    assert error.reason == "CANCELLED"


def test_invalid_requests_are_value_errors():
    assert issubclass(pando_kv.InvalidRequestError, ValueError)


def test_errors_survive_pickling():
    error = pando_kv.PoolExhaustedError("POOL_EXHAUSTED", "why", {"pages": "3"})
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.reason, copy.message, copy.metadata) == (
        "POOL_EXHAUSTED",
        "why",
        {"pages": "3"},
    )
