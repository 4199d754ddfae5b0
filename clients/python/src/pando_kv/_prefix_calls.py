"""The calls about prefixes: match, score, insert, lock, unlock, evict."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pando_kv._call import Begun, Call, handle_values, namespace_values, with_id_of
from pando_kv._locks import LockHandle, claim_held, claim_one
from pando_kv._methods import (
    INSERT,
    LOCK,
    MATCH_PREFIX,
    MATCH_PREFIXES,
    SCORE_BYTES,
    SMALL_ANSWER,
    UNLOCK,
    InsertRequest,
    LockRequest,
    MatchPrefixesRequest,
    MatchPrefixRequest,
    UnlockRequest,
    answer_bytes,
    plain,
)
from pando_kv._pool_calls import free_pages
from pando_kv._proto.pando.v1 import prefix_cache_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv._wire import Uint32Array, as_uint32, is_uint32
from pando_kv.results import (
    ExpectedReuse,
    Insert,
    Load,
    Match,
    Namespace,
    PageRoom,
    PendingOutcome,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
    Tier,
    made,
)

LockT = TypeVar("LockT", bound=LockHandle)

# (session, lock_id, locked tokens, handle of the end) -> the lock object of a client.
LockMaker = Callable[[Session, int, int, "PrefixHandle | None"], LockT]

_PENDING = {outcome.value: outcome for outcome in PendingOutcome}
_TIERS = {tier.value: tier for tier in Tier}
_KEEP, _RELOCK, _UNLOCK = (
    prefix_cache_pb2.LOCK_ACTION_UNSPECIFIED,
    prefix_cache_pb2.LOCK_ACTION_RELOCK,
    prefix_cache_pb2.LOCK_ACTION_UNLOCK,
)


class Place(NamedTuple):
    """The start of the tokens that a call sends: at the handle `after`, or at the start
    of the prompt if that is None."""

    page_tokens: int
    after: PrefixHandle | None = None
    token: int = 0
    page: int = 0


def _place(session: Session, after: PrefixHandle | None, tokens: Uint32Array) -> Place:
    page_tokens = session.pool.layout.page_tokens
    if after is None:
        return Place(page_tokens)
    if after.tokens > tokens.size:
        raise ValueError(
            f"after is a prefix of {after.tokens} tokens; there are {tokens.size}"
        )
    # A handle of another epoch names nothing.
    if after.epoch != session.epoch:
        return Place(page_tokens)
    return Place(page_tokens, after, after.tokens, after.tokens // page_tokens)


def match_prefix(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None = None,
    after: PrefixHandle | None = None,
    max_tokens: int | None = None,
    lock: bool = False,
    reserve_tokens: int = 0,
    touch: bool = True,
    pending_wait: float = 0.0,
    load: Load = Load.SERVER_POLICY,
    begun: Begun | None = None,
) -> Call[Match[LockT]]:
    if math.isnan(pending_wait):
        raise ValueError("pending_wait is nan; must be a number of seconds")
    session = begun.session if begun else sessions.current()
    prompt = as_uint32(tokens, "tokens")

    def call_from(place: Place) -> Call[Match[LockT]]:
        sent = prompt[place.token :] if place.token else prompt
        pages = (sent.size + max(0, reserve_tokens)) // place.page_tokens + 2
        return Call(
            MATCH_PREFIX,
            MatchPrefixRequest(
                session_id=session.session_id,
                namespace=namespace_values(namespace),
                tokens=sent,
                max_tokens=max_tokens,
                lock=lock,
                reserve_tokens=reserve_tokens,
                touch=touch,
                after=handle_values(place.after),
                request_id=session.next_request_id() if lock else 0,
                load=load.value,
            ),
            lambda answer: _match(sessions, session, make_lock, place, answer),
            answer_bytes=answer_bytes(pages),
            repeats_in=session if lock else None,
            give_back=functools.partial(_give_back, sessions) if lock else None,
            pending_wait=pending_wait,
            whole=_whole(place, call_from),
        )

    return with_id_of(begun, call_from(_place(session, after, prompt)))


def _match(
    sessions: SessionTracker,
    session: Session,
    make_lock: LockMaker[LockT],
    place: Place,
    answer: Any,
) -> Match[LockT]:
    matched, page_ids, lock_id, reserved, ends_at, pending, *rest = answer
    free, evictable, loadable, tier, *_ = rest
    sessions.room = made(PageRoom, free=free, evictable=evictable)
    handle = _handle(ends_at)
    return made(
        Match,
        matched_tokens=matched,
        # A cap may end the match before the handle.
        first_page=min(place.page, matched // place.page_tokens),
        page_ids=page_ids,
        lock=make_lock(session, lock_id, matched, handle) if lock_id else None,
        reserved_page_ids=reserved,
        handle=handle,
        pending=_PENDING.get(pending, PendingOutcome.NONE),
        generation=session.generation,
        loadable_tokens=loadable,
        loadable_tier=_TIERS.get(tier, Tier.NONE),
    )


class Scoring:
    """The scoring of a queue: one call for all queries, and a second one that sends the
    whole prompts of queries whose handles are gone. Owned by one thread or task.

    Queues are long and scored often, so the cost for each query matters.
    """

    def __init__(
        self,
        sessions: SessionTracker,
        queries: Sequence[PrefixQuery],
        *,
        tell_loadable: bool,
    ) -> None:
        session = sessions.current()
        self._queries = queries
        self._tell_loadable = tell_loadable
        self._prompts: list[Uint32Array] = [
            tokens
            if is_uint32(tokens := query.tokens)
            else as_uint32(tokens, f"queries[{index}].tokens")
            for index, query in enumerate(queries)
        ]
        # The queries that begin after a handle, by index.
        self._places = {
            index: place
            for index, query in enumerate(queries)
            if query.after is not None
            and not tell_loadable
            and (place := _place(session, query.after, self._prompts[index])).after
        }
        self._unscored: Sequence[int] = range(len(queries))
        self._scores: list[Any] = [None] * len(queries)

    def next_call(self) -> Call[None] | None:
        """Returns the next call, or None when all queries are scored."""
        if not self._unscored:
            return None
        return Call(
            MATCH_PREFIXES,
            MatchPrefixesRequest(
                [self._message(index) for index in self._unscored],
                self._tell_loadable or None,
            ),
            self._take,
            answer_bytes=SMALL_ANSWER + SCORE_BYTES * len(self._unscored),
        )

    @property
    def scores(self) -> list[PrefixScore]:
        return self._scores

    def _message(self, index: int) -> Any:
        query, tokens, after = self._queries[index], self._prompts[index], None
        if index in self._places:
            place = self._places[index]
            tokens, after = tokens[place.token :], handle_values(place.after)
        namespace = query.namespace
        # The fields of pando.v1.PrefixQuery. A plain tuple is faster to make than a
        # named one.
        return (
            None if namespace is None else namespace_values(namespace),
            tokens,
            query.max_tokens,
            after,
        )

    def _take(self, answer: Any) -> None:
        (scores, *_) = answer
        gone = []
        for index, score in zip(self._unscored, scores, strict=True):
            matched, is_pending, is_handle_gone, loadable, tier, *_ = score
            if is_handle_gone and index in self._places:
                gone.append(index)
            else:
                self._scores[index] = made(
                    PrefixScore,
                    matched_tokens=matched,
                    is_pending=is_pending,
                    loadable_tokens=loadable,
                    loadable_tier=_TIERS.get(tier, Tier.NONE),
                )
        for index in gone:
            del self._places[index]
        self._unscored = gone


def insert(
    sessions: SessionTracker,
    tokens: Any,
    page_ids: Any,
    *,
    namespace: Namespace | None = None,
    after: PrefixHandle | None = None,
    lock: LockHandle | None = None,
    relock: bool = False,
    unlock: bool = False,
    keep_duplicates: bool = False,
    free_page_ids: Any = (),
    generation: int | None = None,
    prompt_tokens: int = 0,
    priority: int = 0,
    output_tokens: int | None = None,
    expected_reuse: ExpectedReuse = ExpectedReuse.UNKNOWN,
    retain_seconds: int = 0,
    begun: Begun | None = None,
) -> Call[Insert]:
    """Returns the call of an insert. If `begun` is given, the native module has checked
    the arguments and claimed the lock already."""
    if relock and unlock:
        raise ValueError("relock and unlock are both set; choose one")
    if after is not None and lock is not None:
        raise ValueError("after and lock are both set; choose one")
    session = begun.session if begun else sessions.require_generation(generation)
    if lock is not None and begun is None:
        lock.require_held(sessions)
    added = as_uint32(tokens, "tokens")
    pages = as_uint32(page_ids, "page_ids")
    freed = as_uint32(free_page_ids, "free_page_ids")
    if lock is not None and pages.size and begun is None:
        lock.require_known_end()

    def call_from(place: Place) -> Call[Insert]:
        return Call(
            INSERT,
            InsertRequest(
                session_id=session.session_id,
                namespace=namespace_values(namespace),
                tokens=added[place.token :] if place.token else added,
                page_ids=pages[place.page :] if place.page else pages,
                lock_id=lock.lock_id if lock is not None else 0,
                lock_action=_RELOCK if relock else _UNLOCK if unlock else _KEEP,
                keep_duplicates=keep_duplicates,
                free_page_ids=freed,
                prompt_tokens=prompt_tokens,
                after=handle_values(place.after),
                priority=priority,
                output_tokens=output_tokens,
                expected_reuse=expected_reuse.value,
                retain_seconds=retain_seconds,
                request_id=session.next_request_id(),
            ),
            lambda answer: parse(place, answer),
            answer_bytes=answer_bytes(pages.size),
            moves=lock if relock else None,
            repeats_in=session,
            unpublished=unpublished if lock is not None else None,
            whole=_whole(place, call_from),
        )

    def unpublished() -> Call[None]:
        both = np.concatenate([pages, freed])
        return free_pages(sessions, both, generation=session.generation)

    def parse(place: Place, answer: Any) -> Insert:
        existing, canonical, freed_duplicates, ends_at, free, evictable, *_ = answer
        handle = _handle(ends_at)
        if relock and lock is not None:
            lock.move(pages.size * place.page_tokens, handle)
        sessions.room = made(PageRoom, free=free, evictable=evictable)
        own = pages[place.page + canonical.size :]
        return made(
            Insert,
            existing_tokens=place.token + existing,
            canonical_page_ids=canonical,
            page_ids=np.concatenate([canonical, own]),
            first_page=place.page,
            freed_duplicates=freed_duplicates,
            handle=handle,
        )

    call = with_id_of(begun, call_from(_place(session, after, added)))
    if unlock and lock is not None:
        # The claim comes last, when nothing but the sending can fail.
        call.releases = [lock] if begun else claim_one(sessions, lock)
    return call


def _give_back(sessions: SessionTracker, match: Match[LockT]) -> Call[Insert]:
    return insert(
        sessions,
        (),
        (),
        lock=match.lock,
        unlock=True,
        free_page_ids=match.reserved_page_ids,
        generation=match.generation,
    )


def lock(
    sessions: SessionTracker,
    make_lock: LockMaker[LockT],
    tokens: Any,
    *,
    namespace: Namespace | None = None,
    after: PrefixHandle | None = None,
) -> Call[LockT]:
    session = sessions.current()
    prompt = as_uint32(tokens, "tokens")

    def call_from(place: Place) -> Call[LockT]:
        return Call(
            LOCK,
            LockRequest(
                session_id=session.session_id,
                namespace=namespace_values(namespace),
                tokens=prompt[place.token :],
                after=handle_values(place.after),
                request_id=session.next_request_id(),
            ),
            parse,
            repeats_in=session,
            give_back=lambda lock: unlock_claimed(claim_one(sessions, lock)),
            whole=_whole(place, call_from),
        )

    def parse(answer: Any) -> LockT:
        lock_id, locked_tokens, ends_at, *_ = answer
        return make_lock(session, lock_id, locked_tokens, _handle(ends_at))

    return call_from(_place(session, after, prompt))


def unlock(sessions: SessionTracker, locks: Sequence[LockHandle]) -> Call[None] | None:
    """Claims the held locks, and returns the call that releases them; None if every
    lock was released already."""
    claimed = claim_held(sessions, locks)
    return unlock_claimed(claimed) if claimed else None


def unlock_claimed(
    claimed: Sequence[LockHandle], begun: Begun | None = None
) -> Call[None]:
    session = claimed[0].session
    request = UnlockRequest(
        session_id=session.session_id,
        lock_ids=[lock.lock_id for lock in claimed],
        request_id=session.next_request_id(),
    )
    call: Call[None] = Call(
        UNLOCK,
        request,
        lambda _: None,
        releases=claimed,
        repeats_in=session,
        only_gives_back=True,
    )
    return with_id_of(begun, call)


def nothing() -> Call[None]:
    """Returns a call without effect, which asks for the scores of no prompts."""
    return Call(MATCH_PREFIXES, MatchPrefixesRequest([]), lambda _: None)


def evict(pages: int) -> Call[int]:
    request = prefix_cache_pb2.EvictRequest(pages=pages)

    def parse(data: bytes) -> int:
        return int(prefix_cache_pb2.EvictResponse.FromString(data).evicted_pages)

    return Call(
        plain("/pando.v1.PrefixCache/Evict"), request.SerializeToString(), parse
    )


def _whole(
    place: Place, call_from: Callable[[Place], Call[Any]]
) -> Callable[[], Call[Any]] | None:
    if place.after is None:
        return None
    return functools.cache(lambda: call_from(Place(place.page_tokens)))


def _handle(values: tuple[int, int, int] | None) -> PrefixHandle | None:
    if not values:
        return None
    epoch, node, tokens = values
    return made(PrefixHandle, epoch=epoch, node=node, tokens=tokens)
