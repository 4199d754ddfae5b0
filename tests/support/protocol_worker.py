"""A session that makes the protocol's calls with the fields that a test gives."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message
from pando_kv import Client
from pando_kv._proto.pando.v1 import admin_pb2, pool_pb2, prefix_cache_pb2
from raw_calls import RawCalls

_MESSAGES = {
    "pando.v1.PrefixCache": prefix_cache_pb2,
    "pando.v1.PagePool": pool_pb2,
    "pando.v1.Admin": admin_pb2,
}
_SERVICES = {
    method: service
    for service, messages in _MESSAGES.items()
    for method in messages.DESCRIPTOR.services_by_name[
        service.rpartition(".")[2]
    ].methods_by_name
}


class Call(Protocol):
    """A call that may still run, made by this process or by another."""

    def answer(self) -> bytes: ...

    def failure(self) -> tuple[str, str]: ...

    def is_done(self) -> bool: ...


class Calls(Protocol):
    def start(self, method: str, request: Message) -> Call: ...


@dataclass(frozen=True)
class Answer:
    call: Call
    kind: type[Message]

    def get(self) -> Any:
        return self.kind.FromString(self.call.answer())

    def failure(self) -> tuple[str, str]:
        """Returns the gRPC code and the reason."""
        return self.call.failure()

    def is_here(self) -> bool:
        return self.call.is_done()


class ProtocolWorker:
    def __init__(self, calls: Calls, session_id: int) -> None:
        self._calls = calls
        self.session_id = session_id

    def start(self, method: str, **fields: Any) -> Answer:
        """Starts a call of a method, for example "Insert", in this session."""
        service = _SERVICES[method]
        messages = _MESSAGES[service]
        request = getattr(messages, f"{method}Request")(**fields)
        if "session_id" in request.DESCRIPTOR.fields_by_name:
            request.session_id = self.session_id
        call = self._calls.start(f"{service}/{method}", request)
        return Answer(call, getattr(messages, f"{method}Response"))

    def call(self, method: str, **fields: Any) -> Any:
        return self.start(method, **fields).get()

    def failure(self, method: str, **fields: Any) -> tuple[str, str]:
        """Makes a call that must fail; returns the gRPC code and the reason."""
        return self.start(method, **fields).failure()

    def admit(self, tokens: list[int], **fields: Any) -> Answer:
        """Starts a match that locks cached tokens and reserves pages for the rest."""
        fields = {"lock": True, "reserve_tokens": len(tokens)} | fields
        return self.start("MatchPrefix", tokens=tokens, **fields)

    def finish(self, admission: Any, tokens: list[int]) -> Any:
        """Publishes the tokens of an admission, and releases its lock."""
        return self.call(
            "Insert",
            lock_id=admission.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=len(tokens) - admission.matched_tokens,
            page_ids=admission.reserved_page_ids,
        )

    def unlock(self, admission: Any) -> None:
        self.call("Unlock", lock_ids=[admission.lock_id])

    def cache(self, tokens: list[int], **fields: Any) -> Any:
        """Publishes tokens from the prompt's start, whole pages only."""
        pool = self.call("DescribePool").pool
        allocated = self.call(
            "AllocatePages",
            pages=len(tokens) // pool.layout.page_tokens,
            namespace=fields.get("namespace"),
        )
        return self.call("Insert", tokens=tokens, page_ids=allocated.page_ids, **fields)

    def cached(self, tokens: list[int], **fields: Any) -> int:
        """Returns how many of the tokens are cached, and changes nothing."""
        match = self.call("MatchPrefix", tokens=tokens, touch=False, **fields)
        return match.matched_tokens

    def stats(self) -> admin_pb2.GetStatsResponse:
        return self.call("GetStats")

    def violations(self) -> list[str]:
        return list(self.call("CheckInvariants").violations)


@contextlib.contextmanager
def protocol_worker(address: str) -> Iterator[ProtocolWorker]:
    with Client(address) as client, RawCalls(address) as raw:
        yield ProtocolWorker(raw, client.session_id)
