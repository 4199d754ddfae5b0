"""The calls about prefixes: match, score, insert, lock, unlock, evict."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message

from pando_kv._call import Call, handle_message, namespace_message
from pando_kv._locks import LockHandle, claim_held, claim_one
from pando_kv._proto.pando.v1 import prefix_cache_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array, as_uint32, decode, encode, nested
from pando_kv.results import (
    Insert,
    Match,
    Namespace,
    PageRoom,
    PendingOutcome,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
)

LockT = TypeVar("LockT", bound=LockHandle)

# (session, lock_id, locked tokens, where it ends) -> the lock object of a client.
LockMaker = Callable[[Session, int, int, "PrefixHandle | None"], LockT]

_SERVICE = "/pando.v1.PrefixCache/"


@dataclass(frozen=True)
class Place:
    """Where tokens begin: at a handle, or with None at the start of the prompt."""

    page_tokens: int
    after: PrefixHandle | None

    @property
    def token(self) -> int:
        return self.after.tokens if self.after else 0

    @property
    def page(self) -> int:
        return self.token // self.page_tokens


def _place(session: Session, after: PrefixHandle | None, tokens: Uint32Array) -> Place:
    if after is not None and after.tokens > tokens.size:
        raise ValueError(
            f"after is a prefix of {after.tokens} tokens; there are {tokens.size}"
        )
    # A handle of another boot stands for nothing.
    is_usable = after is not None and after.epoch == session.epoch
    return Place(session.pool.layout.page_tokens, after if is_usable else None)


def match_prefix(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None,
    after: PrefixHandle | None,
    max_tokens: int | None,
    lock: bool,
    reserve_tokens: int,
    touch: bool,
    pending_wait: float,
) -> Call[Match[LockT]]:
    session = sessions.current()
    prompt = as_uint32(tokens, "tokens")

    def call_from(place: Place) -> Call[Match[LockT]]:
        kind = prefix_cache_pb2.MatchPrefixRequest
        request = kind(
            session_id=session.session_id,
            namespace=namespace_message(namespace),
            after=handle_message(place.after),
            max_tokens=max_tokens,
            lock=lock,
            reserve_tokens=reserve_tokens,
            touch=touch,
            request_id=session.next_request_id() if lock else 0,
        )
        lists = {kind.TOKENS_FIELD_NUMBER: prompt[place.token :]}
        return Call(
            _SERVICE + "MatchPrefix",
            encode(request, lists),
            functools.partial(_parse_match, sessions, session, make_lock, place),
            repeats_in=session if lock else None,
            give_back=functools.partial(_give_back, sessions) if lock else None,
            pending_wait=pending_wait,
            whole=_whole(place, call_from),
        )

    return call_from(_place(session, after, prompt))


def _parse_match(
    sessions: SessionTracker,
    session: Session,
    make_lock: LockMaker[LockT],
    place: Place,
    data: bytes,
) -> Match[LockT]:
    kind = prefix_cache_pb2.MatchPrefixResponse
    response, (page_ids, reserved) = decode(
        kind,
        data,
        kind.PAGE_IDS_FIELD_NUMBER,
        kind.RESERVED_PAGE_IDS_FIELD_NUMBER,
    )
    sessions.room = PageRoom(response.free_pages, response.evictable_pages)
    matched, lock_id = response.matched_tokens, response.lock_id
    handle = _handle(response)
    return Match(
        matched_tokens=matched,
        # A cap may end the match before the handle.
        first_page=min(place.page, matched // place.page_tokens),
        page_ids=page_ids,
        lock=make_lock(session, lock_id, matched, handle) if lock_id else None,
        reserved_page_ids=reserved,
        handle=handle,
        pending=PendingOutcome(response.pending),
        generation=session.generation,
    )


class Scoring:
    """The scores of a queue: one call, and a second one for the queries whose handle
    turns out to be gone, whole."""

    def __init__(
        self, sessions: SessionTracker, queries: Sequence[PrefixQuery]
    ) -> None:
        session = sessions.current()
        self._queries = [
            (query, as_uint32(query.tokens, f"queries[{index}].tokens"))
            for index, query in enumerate(queries)
        ]
        self._places = [
            _place(session, query.after, tokens) for query, tokens in self._queries
        ]
        self._unscored = list(range(len(queries)))
        self._scores: dict[int, PrefixScore] = {}

    def next_call(self) -> Call[None] | None:
        """None when all is scored."""
        if not self._unscored:
            return None
        field = prefix_cache_pb2.MatchPrefixesRequest.QUERIES_FIELD_NUMBER
        request = b"".join(
            nested(field, self._encode(index)) for index in self._unscored
        )
        return Call(_SERVICE + "MatchPrefixes", request, self._take)

    @property
    def scores(self) -> list[PrefixScore]:
        return [self._scores[index] for index in range(len(self._queries))]

    def _encode(self, index: int) -> bytes:
        (query, tokens), place = self._queries[index], self._places[index]
        kind = prefix_cache_pb2.PrefixQuery
        message = kind(
            namespace=namespace_message(query.namespace),
            max_tokens=query.max_tokens,
            after=handle_message(place.after),
        )
        return encode(message, {kind.TOKENS_FIELD_NUMBER: tokens[place.token :]})

    def _take(self, data: bytes) -> None:
        response = prefix_cache_pb2.MatchPrefixesResponse.FromString(data)
        asked, self._unscored = self._unscored, []
        for index, score in zip(asked, response.scores, strict=True):
            place = self._places[index]
            if score.is_handle_gone and place.after is not None:
                self._places[index] = Place(place.page_tokens, None)
                self._unscored.append(index)
            else:
                self._scores[index] = PrefixScore(
                    score.matched_tokens, score.is_pending
                )


def insert(
    sessions: SessionTracker,
    tokens: Any,
    page_ids: Any,
    *,
    namespace: Namespace | None,
    after: PrefixHandle | None,
    lock: LockHandle | None,
    relock: bool,
    unlock: bool,
    keep_duplicates: bool,
    free_page_ids: Any,
    generation: int | None,
    prompt_tokens: int,
    priority: int,
) -> Call[Insert]:
    if relock and unlock:
        raise ValueError("relock and unlock are both set; choose one")
    if after is not None and lock is not None:
        raise ValueError("after and lock are both set; choose one")
    session = sessions.require_generation(generation)
    if lock is not None:
        lock.require_held(sessions)
    added = as_uint32(tokens, "tokens")
    pages = as_uint32(page_ids, "page_ids")
    freed = as_uint32(free_page_ids, "free_page_ids")

    def call_from(place: Place) -> Call[Insert]:
        kind = prefix_cache_pb2.InsertRequest
        request = kind(
            session_id=session.session_id,
            namespace=namespace_message(namespace),
            after=handle_message(place.after),
            lock_id=lock.lock_id if lock is not None else 0,
            lock_action=_lock_action(relock, unlock),
            keep_duplicates=keep_duplicates,
            prompt_tokens=prompt_tokens,
            priority=priority,
            request_id=session.next_request_id(),
        )
        lists = {
            kind.TOKENS_FIELD_NUMBER: added[place.token :],
            kind.PAGE_IDS_FIELD_NUMBER: pages[place.page :],
            kind.FREE_PAGE_IDS_FIELD_NUMBER: freed,
        }
        return Call(
            _SERVICE + "Insert",
            encode(request, lists),
            functools.partial(parse, place),
            repeats_in=session,
            whole=_whole(place, call_from),
        )

    def parse(place: Place, data: bytes) -> Insert:
        kind = prefix_cache_pb2.InsertResponse
        response, (canonical,) = decode(
            kind, data, kind.CANONICAL_PAGE_IDS_FIELD_NUMBER
        )
        handle = _handle(response)
        if relock and lock is not None:
            lock.move(pages.size * place.page_tokens, handle)
        sessions.room = PageRoom(response.free_pages, response.evictable_pages)
        own = pages[place.page + canonical.size :]
        return Insert(
            existing_tokens=place.token + response.existing_tokens,
            canonical_page_ids=canonical,
            page_ids=np.concatenate([canonical, own]),
            first_page=place.page,
            freed_duplicates=response.freed_duplicates,
            handle=handle,
        )

    call = call_from(_place(session, after, added))
    if unlock and lock is not None:
        # Last, when nothing can fail any more but the sending.
        return replace(call, releases=claim_one(sessions, lock))
    return call


def _give_back(sessions: SessionTracker, match: Match[LockT]) -> Call[Insert]:
    return insert(
        sessions,
        (),
        (),
        namespace=None,
        after=None,
        lock=match.lock,
        relock=False,
        unlock=True,
        keep_duplicates=False,
        free_page_ids=match.reserved_page_ids,
        generation=match.generation,
        prompt_tokens=0,
        priority=0,
    )


def lock(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None,
    after: PrefixHandle | None,
) -> Call[LockT]:
    session = sessions.current()
    prompt = as_uint32(tokens, "tokens")

    def call_from(place: Place) -> Call[LockT]:
        kind = prefix_cache_pb2.LockRequest
        request = kind(
            session_id=session.session_id,
            namespace=namespace_message(namespace),
            after=handle_message(place.after),
            request_id=session.next_request_id(),
        )
        return Call(
            _SERVICE + "Lock",
            encode(request, {kind.TOKENS_FIELD_NUMBER: prompt[place.token :]}),
            parse,
            repeats_in=session,
            give_back=lambda lock: _unlock(claim_one(sessions, lock)),
            whole=_whole(place, call_from),
        )

    def parse(data: bytes) -> LockT:
        response = prefix_cache_pb2.LockResponse.FromString(data)
        return make_lock(
            session, response.lock_id, response.locked_tokens, _handle(response)
        )

    return call_from(_place(session, after, prompt))


def unlock(sessions: SessionTracker, locks: Sequence[LockHandle]) -> Call[None] | None:
    """None if every lock was released already."""
    claimed = claim_held(sessions, locks)
    return _unlock(claimed) if claimed else None


def _unlock(claimed: Sequence[LockHandle]) -> Call[None]:
    session = claimed[0].session
    request = prefix_cache_pb2.UnlockRequest(
        session_id=session.session_id,
        lock_ids=[lock.lock_id for lock in claimed],
        request_id=session.next_request_id(),
    )
    return Call(
        _SERVICE + "Unlock",
        request.SerializeToString(),
        lambda _: None,
        claimed,
        repeats_in=session,
    )


def evict(pages: int) -> Call[int]:
    request = prefix_cache_pb2.EvictRequest(pages=pages)

    def parse(data: bytes) -> int:
        return int(prefix_cache_pb2.EvictResponse.FromString(data).evicted_pages)

    return Call(_SERVICE + "Evict", request.SerializeToString(), parse)


def _whole(
    place: Place, call_from: Callable[[Place], Call[Any]]
) -> Callable[[], Call[Any]] | None:
    if place.after is None:
        return None
    return functools.cache(lambda: call_from(Place(place.page_tokens, None)))


def _handle(response: Message) -> PrefixHandle | None:
    if not response.HasField("handle"):
        return None
    handle = response.handle
    return PrefixHandle(handle.epoch, handle.node, handle.tokens)


def _lock_action(relock: bool, unlock: bool) -> prefix_cache_pb2.LockAction:
    if relock:
        return prefix_cache_pb2.LOCK_ACTION_RELOCK
    if unlock:
        return prefix_cache_pb2.LOCK_ACTION_UNLOCK
    return prefix_cache_pb2.LOCK_ACTION_UNSPECIFIED
