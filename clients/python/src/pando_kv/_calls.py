"""Each call as data: the method, the request's bytes, how to read the answer.

The synchronous and the asyncio client differ only in how they send one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc

from pando_kv._locks import LockHandle, claim_held, claim_one
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    pool_pb2,
    prefix_cache_pb2,
    types_pb2,
)
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array, as_uint32, decode, encode
from pando_kv.errors import SessionLostError, UnknownLockError, from_rpc_error
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.results import (
    CacheCounters,
    Flush,
    Insert,
    Match,
    Namespace,
    PageStates,
    Stats,
    from_message,
)

LockT = TypeVar("LockT", bound=LockHandle)
T = TypeVar("T")

# (session, lock_id, locked tokens) -> the lock object of a client.
LockMaker = Callable[[Session, int, int], LockT]

_CACHE = "/pando.v1.PrefixCache/"
_POOL = "/pando.v1.PagePool/"
_ADMIN = "/pando.v1.Admin/"


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    # Not shown: tracebacks must not carry tokens.
    request: bytes = field(repr=False)
    parse: Callable[[bytes], T]
    # Locks that the call releases, claimed by it.
    releases: Sequence[LockHandle] = ()

    @contextmanager
    def sending(self, sessions: SessionTracker) -> Iterator[None]:
        """Around the sending: makes errors typed, restores locks on failure."""
        try:
            sessions.require_open()
            yield
        except grpc.RpcError as rpc_error:
            error = from_rpc_error(rpc_error)
            if not isinstance(error, (SessionLostError, UnknownLockError)):
                self._restore_locks()
            raise error from rpc_error
        except BaseException:
            self._restore_locks()
            raise

    def _restore_locks(self) -> None:
        for lock in self.releases:
            lock.restore()


def match_prefix(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None,
    max_tokens: int | None,
    lock: bool,
    reserve_tokens: int,
    touch: bool,
) -> Call[Match[LockT]]:
    session = sessions.current()
    kind = prefix_cache_pb2.MatchPrefixRequest
    request = kind(
        session_id=session.session_id if lock or reserve_tokens else 0,
        namespace=_namespace(namespace),
        max_tokens=max_tokens,
        lock=lock,
        reserve_tokens=reserve_tokens,
        touch=touch,
    )
    lists = {kind.TOKENS_FIELD_NUMBER: as_uint32(tokens, "tokens")}

    def parse(data: bytes) -> Match[LockT]:
        kind = prefix_cache_pb2.MatchPrefixResponse
        response, (page_ids, reserved) = decode(
            kind,
            data,
            kind.PAGE_IDS_FIELD_NUMBER,
            kind.RESERVED_PAGE_IDS_FIELD_NUMBER,
        )
        matched = response.matched_tokens
        return Match(
            matched_tokens=matched,
            page_ids=page_ids,
            lock=make_lock(session, response.lock_id, matched) if lock else None,
            reserved_page_ids=reserved,
            generation=session.generation,
        )

    return Call(_CACHE + "MatchPrefix", encode(request, lists), parse)


def insert(
    sessions: SessionTracker,
    tokens: Any,
    page_ids: Any,
    *,
    namespace: Namespace | None,
    lock: LockHandle | None,
    relock: bool,
    unlock: bool,
    keep_duplicates: bool,
    free_page_ids: Any,
    generation: int | None,
    prompt_tokens: int,
) -> Call[Insert]:
    if relock and unlock:
        raise ValueError("relock and unlock are both set; choose one")
    session = sessions.require_generation(generation)
    if lock is not None:
        lock.require_held(sessions)
    kind = prefix_cache_pb2.InsertRequest
    pages = as_uint32(page_ids, "page_ids")
    lists = {
        kind.TOKENS_FIELD_NUMBER: as_uint32(tokens, "tokens"),
        kind.PAGE_IDS_FIELD_NUMBER: pages,
        kind.FREE_PAGE_IDS_FIELD_NUMBER: as_uint32(free_page_ids, "free_page_ids"),
    }
    request = kind(
        session_id=session.session_id,
        namespace=_namespace(namespace),
        lock_id=lock.lock_id if lock is not None else 0,
        lock_action=_lock_action(relock, unlock),
        keep_duplicates=keep_duplicates,
        prompt_tokens=prompt_tokens,
    )

    def parse(data: bytes) -> Insert:
        kind = prefix_cache_pb2.InsertResponse
        response, (canonical,) = decode(
            kind, data, kind.CANONICAL_PAGE_IDS_FIELD_NUMBER
        )
        if relock and lock is not None:
            lock.locked_tokens += pages.size * session.pool.layout.page_tokens
        return Insert(
            existing_tokens=response.existing_tokens,
            canonical_page_ids=canonical,
            freed_duplicates=response.freed_duplicates,
        )

    encoded = encode(request, lists)
    releases = claim_one(sessions, lock) if unlock and lock is not None else ()
    return Call(_CACHE + "Insert", encoded, parse, releases)


def lock(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None,
) -> Call[LockT]:
    session = sessions.current()
    kind = prefix_cache_pb2.LockRequest
    request = kind(session_id=session.session_id, namespace=_namespace(namespace))
    lists = {kind.TOKENS_FIELD_NUMBER: as_uint32(tokens, "tokens")}

    def parse(data: bytes) -> LockT:
        response = prefix_cache_pb2.LockResponse.FromString(data)
        return make_lock(session, response.lock_id, response.locked_tokens)

    return Call(_CACHE + "Lock", encode(request, lists), parse)


def unlock(sessions: SessionTracker, locks: Sequence[LockHandle]) -> Call[None] | None:
    """None if every lock was released already."""
    claimed = claim_held(sessions, locks)
    if not claimed:
        return None
    request = prefix_cache_pb2.UnlockRequest(
        session_id=claimed[0].session.session_id,
        lock_ids=[lock.lock_id for lock in claimed],
    )
    return Call(_CACHE + "Unlock", request.SerializeToString(), _nothing, claimed)


def evict(pages: int) -> Call[int]:
    request = prefix_cache_pb2.EvictRequest(pages=pages)

    def parse(data: bytes) -> int:
        return int(prefix_cache_pb2.EvictResponse.FromString(data).evicted_pages)

    return Call(_CACHE + "Evict", request.SerializeToString(), parse)


def allocate_pages(sessions: SessionTracker, pages: int) -> Call[Uint32Array]:
    request = pool_pb2.AllocatePagesRequest(
        session_id=sessions.current().session_id, pages=pages
    )

    def parse(data: bytes) -> Uint32Array:
        kind = pool_pb2.AllocatePagesResponse
        _, (page_ids,) = decode(kind, data, kind.PAGE_IDS_FIELD_NUMBER)
        return page_ids

    return Call(_POOL + "AllocatePages", request.SerializeToString(), parse)


def free_pages(
    sessions: SessionTracker, page_ids: Any, *, generation: int | None
) -> Call[None]:
    session = sessions.require_generation(generation)
    kind = pool_pb2.FreePagesRequest
    request = kind(session_id=session.session_id)
    lists = {kind.PAGE_IDS_FIELD_NUMBER: as_uint32(page_ids, "page_ids")}
    return Call(_POOL + "FreePages", encode(request, lists), _nothing)


def describe_pool() -> Call[PoolDescription]:
    def parse(data: bytes) -> PoolDescription:
        response = pool_pb2.DescribePoolResponse.FromString(data)
        return PoolDescription.from_message(response.pool)

    return Call(_POOL + "DescribePool", b"", parse)


@dataclass(frozen=True)
class AttachGrant:
    """The right to map the pool once, to be shown on the memory socket."""

    session: Session
    token: bytes
    memory_socket: str


def attach_pool(
    sessions: SessionTracker, *, expected_layout: KvLayout | None, model: str | None
) -> Call[AttachGrant]:
    session = sessions.current()
    fingerprint = 0
    if expected_layout is not None or model is not None:
        layout = expected_layout or session.pool.layout
        fingerprint = layout.fingerprint(session.pool.model if model is None else model)
    request = pool_pb2.AttachPoolRequest(
        session_id=session.session_id, fingerprint=fingerprint
    )

    def parse(data: bytes) -> AttachGrant:
        response = pool_pb2.AttachPoolResponse.FromString(data)
        return AttachGrant(session, response.token, response.memory_socket)

    return Call(_POOL + "AttachPool", request.SerializeToString(), parse)


def stats() -> Call[Stats]:
    def parse(data: bytes) -> Stats:
        response = admin_pb2.GetStatsResponse.FromString(data)
        return Stats(
            pages=from_message(PageStates, response.pages),
            counters=from_message(CacheCounters, response.counters),
            sessions=response.sessions,
            locks=response.locks,
            nodes=response.nodes,
            namespaces=response.namespaces,
            epoch=response.epoch,
        )

    return Call(_ADMIN + "GetStats", b"", parse)


def flush() -> Call[Flush]:
    def parse(data: bytes) -> Flush:
        return from_message(Flush, admin_pb2.FlushResponse.FromString(data))

    return Call(_ADMIN + "Flush", b"", parse)


def check_invariants() -> Call[list[str]]:
    def parse(data: bytes) -> list[str]:
        return list(admin_pb2.CheckInvariantsResponse.FromString(data).violations)

    return Call(_ADMIN + "CheckInvariants", b"", parse)


def _namespace(namespace: Namespace | None) -> types_pb2.Namespace | None:
    if namespace is None:
        return None
    return types_pb2.Namespace(
        extra_key=namespace.extra_key, cache_salt=namespace.cache_salt
    )


def _lock_action(relock: bool, unlock: bool) -> prefix_cache_pb2.LockAction:
    if relock:
        return prefix_cache_pb2.LOCK_ACTION_RELOCK
    if unlock:
        return prefix_cache_pb2.LOCK_ACTION_UNLOCK
    return prefix_cache_pb2.LOCK_ACTION_UNSPECIFIED


def _nothing(_: bytes) -> None:
    return None
