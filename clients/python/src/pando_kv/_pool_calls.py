"""The calls about the pool: its pages and its memory."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from pando_kv._call import Begun, Call, namespace_values, with_id_of
from pando_kv._fitting_pool import difference
from pando_kv._methods import (
    ALLOCATE_PAGES,
    FREE_PAGES,
    AllocatePagesRequest,
    FreePagesRequest,
    answer_bytes,
    plain,
)
from pando_kv._proto.pando.v1 import pool_pb2, session_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array, as_uint32
from pando_kv.errors import LayoutMismatchError
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.results import Namespace, PageRoom, made

_SERVICE = "/pando.v1.PagePool/"


def allocate_pages(
    sessions: SessionTracker,
    pages: int,
    *,
    at_least: int | None = None,
    namespace: Namespace | None = None,
    begun: Begun | None = None,
) -> Call[Uint32Array]:
    session = begun.session if begun else sessions.current()
    request = AllocatePagesRequest(
        session_id=session.session_id,
        pages=pages,
        namespace=namespace_values(namespace),
        min_pages=at_least,
        request_id=session.next_request_id(),
    )

    def parse(answer: tuple[Any, ...]) -> Uint32Array:
        page_ids: Uint32Array
        page_ids, free, evictable, *_ = answer
        sessions.room = made(PageRoom, free=free, evictable=evictable)
        return page_ids

    call = Call(
        ALLOCATE_PAGES,
        request,
        parse,
        answer_bytes=answer_bytes(int(pages)),
        repeats_in=session,
        give_back=functools.partial(
            free_pages, sessions, generation=session.generation
        ),
    )
    return with_id_of(begun, call)


def free_pages(
    sessions: SessionTracker,
    page_ids: Any,
    *,
    generation: int | None = None,
    begun: Begun | None = None,
) -> Call[None]:
    session = begun.session if begun else sessions.require_generation(generation)
    request = FreePagesRequest(
        session_id=session.session_id,
        page_ids=as_uint32(page_ids, "page_ids"),
        request_id=session.next_request_id(),
    )
    call: Call[None] = Call(
        FREE_PAGES,
        request,
        lambda _: None,
        repeats_in=session,
        only_gives_back=True,
    )
    return with_id_of(begun, call)


def end_session(session_id: int) -> Call[None]:
    request = session_pb2.EndSessionRequest(session_id=session_id)
    return Call(
        plain("/pando.v1.Sessions/End"), request.SerializeToString(), lambda _: None
    )


def describe_pool() -> Call[PoolDescription]:
    def parse(data: bytes) -> PoolDescription:
        response = pool_pb2.DescribePoolResponse.FromString(data)
        return PoolDescription.from_message(response.pool)

    return Call(plain(_SERVICE + "DescribePool"), b"", parse)


def say_layout(
    session: Session, layout: KvLayout | None, model: str | None
) -> Call[None]:
    """Returns the call that states a layout to an open pool. The pool takes this
    layout, or that of a worker that came first, and pandod restarts itself with it."""
    request = pool_pb2.AttachPoolRequest(
        session_id=session.session_id,
        layout=None if layout is None else layout.to_message(),
        model=model or "",
    )
    return Call(
        plain(_SERVICE + "AttachPool"), request.SerializeToString(), lambda _: None
    )


@dataclass(frozen=True)
class AttachGrant:
    """The right to map the pool once. The token is shown at the memory socket."""

    session: Session
    token: bytes
    memory_socket: str


def attach_pool(
    sessions: SessionTracker,
    *,
    expected_layout: KvLayout | None,
    model: str | None,
    model_digest: str,
) -> Call[AttachGrant]:
    session = sessions.current()
    pool = session.pool
    fingerprint = 0
    if expected_layout is not None or model is not None:
        layout = expected_layout or pool.layout
        if layout.has_no_size:
            layout = layout.in_pool_of(pool.capacity_pages)
        stated_model = pool.model if model is None else model
        # pandod compares only fingerprints, so it cannot say what differs.
        if differing := difference(layout, stated_model, pool):
            raise LayoutMismatchError("LAYOUT_MISMATCH", differing)
        fingerprint = layout.fingerprint(stated_model)
    request = pool_pb2.AttachPoolRequest(
        session_id=session.session_id,
        fingerprint=fingerprint,
        model_digest=model_digest,
    )

    return _attach(session, request)


def link_session(sessions: SessionTracker, session_id: int) -> Call[AttachGrant]:
    """Returns the attach call for the session of another process."""
    request = pool_pb2.AttachPoolRequest(session_id=session_id)
    return _attach(sessions.current(), request)


def _attach(session: Session, request: pool_pb2.AttachPoolRequest) -> Call[AttachGrant]:
    def parse(data: bytes) -> AttachGrant:
        response = pool_pb2.AttachPoolResponse.FromString(data)
        return AttachGrant(session, response.token, response.memory_socket)

    return Call(plain(_SERVICE + "AttachPool"), request.SerializeToString(), parse)
