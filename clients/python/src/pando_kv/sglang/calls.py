"""The calls of the prefix cache to pandod, with plain data as arguments and answers.

Each tensor-parallel rank runs a scheduler of its own, and all schedulers must decide
alike. Therefore only rank 0 calls pandod, and shares the answers with the other ranks.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from pando_kv import Answer as BegunCall
from pando_kv import Client, Insert, Lock, Match, Namespace, PageRoom, PrefixQuery
from pando_kv._room import allocate_what_there_is, room_now
from pando_kv._tier_waits import Prompt, TierWaits
from pando_kv._wire import Uint32Array
from pando_kv.client import Batch
from pando_kv.errors import (
    AwayError,
    DeadlineError,
    DrainingError,
    InvalidRequestError,
    PandoError,
    PoolExhaustedError,
    QuotaExceededError,
    SessionLimitError,
    SessionLostError,
    UnavailableError,
    UnknownLockError,
)

T = TypeVar("T")

_log = logging.getLogger("pando_kv.sglang")

_NO_PAGES = np.empty(0, np.uint32)
# Errors that say that there is no room, or that pandod drains. A waiting request asks
# again in the next step.
_NOT_NOW = (PoolExhaustedError, QuotaExceededError, SessionLimitError, DrainingError)


class PandoLostError(RuntimeError):
    """The error that ends the engine: its session is lost, and with it every page, or a
    call has failed in an unexpected way."""


@dataclass(frozen=True)
class Admission:
    """A locked prefix, and the reserved pages for the rest of its prompt."""

    tokens: int
    page_ids: Uint32Array
    lock_id: int
    reserved: Uint32Array


@dataclass(frozen=True)
class ToPublish:
    """Pages to be published, which follow the locked prefix. The lock moves to their
    end; with `is_last` it is released. Duplicates remain the engine's, except those of
    the last publication, which pandod frees."""

    lock_id: int
    tokens: Uint32Array
    page_ids: Uint32Array
    is_last: bool = False
    priority: int = 0
    free: Uint32Array = field(default_factory=lambda: _NO_PAGES)


@dataclass(frozen=True)
class Publication:
    """The answer to one publication."""

    existing: Uint32Array
    """The cache's pages for those tokens, at the front of the publication, that were
    cached already."""
    is_answered: bool = True
    """Whether pandod answered. If not, the state of the pages is unknown."""


@dataclass(frozen=True)
class Answer:
    """The result of a call, as rank 0 shares it: a value, or the reason in `lost` for
    which the engine must end, and the room in the pool."""

    value: Any
    lost: str = ""
    room: PageRoom = field(default=PageRoom(0, 0))


class Calls:
    """The calls of one rank to pandod. Owned by PandoPrefixCache; the scheduler's
    thread alone uses it, and all ranks make the same calls.

    The engine must go on when a call fails, so a failed call is logged and returns None
    or an empty result. Any call may raise PandoLostError, which ends the engine.
    """

    def __init__(
        self, client: Client | None, share: Callable[[Any], Any], wait: float = 0.0
    ) -> None:
        """Asks for the room in the pool. `client` is None on all ranks but rank 0.
        `share` returns rank 0's object on every rank. `wait` is the number of seconds
        for which a request may wait while a tier loads its prompt; it must be the same
        on all ranks."""
        self._client = client
        self.may_wait = wait > 0
        self._tier_waits = None if client is None else TierWaits(client, wait)
        self._share = share
        self._locks: dict[int, Lock] = {}
        # The publications that go along with the next call.
        self._batch: Batch | None = None
        self._generation = 0 if client is None else client.generation
        self._told: PageRoom | None = None
        self.room = PageRoom(0, 0)
        self.room = self._ask(_room_of) or self.room

    def look(self) -> None:
        """Updates `room` from the gauge page, without a call of pandod."""
        self.room = self._ask(room_now) or self.room

    def held_back(
        self, queue: Container[str], first: Mapping[str, Callable[[], Prompt]]
    ) -> set[str]:
        """Returns the ids of those requests in `first` that a tier still loads prompts
        for. Ends the waits of requests that are not in `queue` any more."""
        waits = self._tier_waits
        if waits is not None:
            waits.begin_step()
            waits.keep(queue)
        if not first:
            return set()

        def call(_: Client) -> set[str]:
            assert waits is not None
            return {rid for rid, prompt in first.items() if waits.holds(rid, prompt)}

        return self._ask(call) or set()

    def admit(
        self, tokens: Uint32Array, namespace: Namespace | None, reserve_tokens: int
    ) -> Admission | None:
        """Locks the longest cached prefix and reserves pages for `reserve_tokens`
        tokens.

        Returns None, with nothing held, if there is no room, pandod drains or does not
        answer. If pandod rejects the match as invalid, only reserves pages and returns
        an admission without a lock."""

        def call(client: Client) -> Admission | None:
            try:
                match = self._match(
                    client,
                    tokens,
                    namespace=namespace,
                    lock=True,
                    reserve_tokens=reserve_tokens,
                )
            except _NOT_NOW:
                return None
            except InvalidRequestError as error:
                _log.warning("pandod: %s; a request runs without its cache", error)
                pages = reserve_tokens // client.pool.layout.page_tokens
                reserved = client.allocate_pages(pages) if pages else _NO_PAGES
                return Admission(0, _NO_PAGES, 0, reserved)
            assert match.lock is not None
            self._locks[match.lock.lock_id] = match.lock
            return Admission(
                match.matched_tokens,
                match.page_ids,
                match.lock.lock_id,
                match.reserved_page_ids,
            )

        return self._ask(call)

    def _match(
        self, client: Client, tokens: Uint32Array, **options: Any
    ) -> Match[Lock]:
        if self._batch is None:
            return client.match_prefix(tokens, **options)
        try:
            asked = self._batch.match_prefix(tokens, **options)
        finally:
            self._begin_batch()
        return asked.result()

    def score(self, queries: Sequence[PrefixQuery]) -> list[int]:
        """Returns the number of cached tokens of each prompt: 0 for all if the call
        fails. Nothing is held or touched."""

        def call(client: Client) -> list[int]:
            self._begin_batch()
            return _scores(client, queries)

        return self._ask(call) or [0] * len(queries)

    def publish(
        self, wanted: Sequence[ToPublish], *, goes_along: bool = False
    ) -> list[Callable[[], Publication | None]]:
        """Begins the publications without waiting for them. Returns one function for
        each, to be called once: it waits for the answer, and returns None if nothing
        was published. With `goes_along` the publications are sent with the next
        call."""
        if self._client is None:
            return [self._publication(each, None) for each in wanted]
        if len(wanted) == 1 and wanted[0].is_last and not (goes_along or self._batch):
            begin = self._client.begin_insert  # cheaper than a batch of one call
            return [self._publication(wanted[0], self._begun(begin, wanted[0]))]
        self._batch = self._batch or self._client.batch()
        answers = [
            self._publication(each, self._begun(self._batch.insert, each))
            for each in wanted
        ]
        if not goes_along:
            self._begin_batch()
        return answers

    def _begun(
        self, begin: Callable[..., BegunCall[Insert]], wanted: ToPublish
    ) -> Callable[[], Insert]:
        try:
            return begin(
                wanted.tokens,
                wanted.page_ids,
                lock=self._locks[wanted.lock_id],
                relock=not wanted.is_last,
                unlock=wanted.is_last,
                keep_duplicates=not wanted.is_last,
                free_page_ids=wanted.free,
                priority=wanted.priority,
            ).result
        except PandoError as error:
            return partial(_fail, error)

    def _begin_batch(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            # Each answer of the batch raises the error, too.
            with contextlib.suppress(PandoError):
                batch.begin()

    def _publication(
        self, wanted: ToPublish, begun: Callable[[], Insert] | None
    ) -> Callable[[], Publication | None]:
        def call(_: Client) -> Publication | None:
            assert begun is not None
            try:
                done = begun()
            except AwayError:
                return None
            except (DeadlineError, UnavailableError) as error:
                _log.warning(
                    "pandod: %s; %d pages are used no more", error, wanted.page_ids.size
                )
                return Publication(_NO_PAGES, is_answered=False)
            if wanted.is_last:
                self._locks.pop(wanted.lock_id)
            return Publication(done.canonical_page_ids)

        return lambda: self._ask(call)

    @property
    def is_away(self) -> bool:
        """Whether pandod is away. Only rank 0 knows; on other ranks it is False."""
        return self._client is not None and self._client.is_away

    def agree(self, is_so: T) -> T:
        """Returns rank 0's value on all ranks."""
        return self._ask(lambda _: is_so)  # type: ignore[return-value]

    def release(self, lock_ids: Sequence[int]) -> None:
        """Releases the locks in one call."""

        def call(client: Client) -> None:
            # An earlier call that was not answered may have released the lock.
            with contextlib.suppress(UnknownLockError):
                client.unlock(*(self._locks.pop(lock_id) for lock_id in lock_ids))

        if lock_ids:
            self._ask(call)

    def allocate(self, pages: int) -> Uint32Array:
        """Reserves up to `pages` pages, as many as there is room for, and returns
        them."""

        def call(client: Client) -> Uint32Array:
            self._begin_batch()
            return allocate_what_there_is(client, pages)

        allocated = self._ask(call)
        return _NO_PAGES if allocated is None else allocated

    def free(self, page_ids: Uint32Array) -> None:
        if page_ids.size:
            self._ask(lambda client: client.free_pages(page_ids))

    def _ask(self, call: Callable[[Client], T | None]) -> T | None:
        answer: Answer = self._share(
            None if self._client is None else self._answer(self._client, call)
        )
        if answer.lost:
            raise PandoLostError(answer.lost)
        self.room = answer.room
        return answer.value  # type: ignore[no-any-return]

    def _answer(self, client: Client, call: Callable[[Client], T | None]) -> Answer:
        value: T | None = None
        try:
            if client.generation != self._generation:
                raise SessionLostError("SESSION_LOST", "pandod has begun anew")
            value = call(client)
        except SessionLostError as error:
            return Answer(None, lost=_what_now(error))
        except AwayError:
            pass  # The client logged it when pandod went away.
        except PandoError as error:
            _log.warning("pandod: %s; going on without it", error)
        except Exception as error:
            # The other ranks wait for an answer, so an exception must not escape here.
            _log.exception("a call of pandod has failed")
            return Answer(None, lost=f"a call of pandod has failed: {error!r}")
        told, self._told = self._told, client.room
        # Not every answer tells the room. If this one did not, self.room may be newer,
        # since it may have been read from the gauge page.
        if self._told is None or self._told is told:
            return Answer(value, room=self.room)
        return Answer(value, room=self._told)


def _fail(error: PandoError) -> NoReturn:
    raise error


def _room_of(client: Client) -> PageRoom:
    pages = client.gauges().pages
    return PageRoom(pages.free, pages.evictable)


def _scores(client: Client, queries: Sequence[PrefixQuery]) -> list[int]:
    """Returns the score of each query. Splits the queries in halves if together they
    have more tokens than pandod takes at once."""
    try:
        return [score.matched_tokens for score in client.match_prefixes(queries)]
    except InvalidRequestError:
        if len(queries) < 2:
            return [0] * len(queries)
    middle = len(queries) // 2
    return _scores(client, queries[:middle]) + _scores(client, queries[middle:])


def _what_now(error: SessionLostError) -> str:
    return (
        f"the session with pandod is lost ({error.message}): the pages of this engine "
        "are void, and its KV memory is not the pool's any more. Restart the engine."
    )
