"""Batches of calls, which travel with one doorbell on a lane or as one call
over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from pando_kv import _block_calls, _pool_calls, _prefix_calls
from pando_kv._call import Call, first_request, is_unsettled
from pando_kv._locks import LockHandle
from pando_kv._methods import plain
from pando_kv._prefix_calls import LockMaker, LockT
from pando_kv._proto.pando.v1 import data_path_pb2
from pando_kv._session import SessionTracker
from pando_kv._wire import Uint32Array, nested
from pando_kv.blocks import BlockKeys
from pando_kv.errors import PandoError, from_status
from pando_kv.results import Insert, Match

T = TypeVar("T")
E = TypeVar("E")

BATCH = plain("/pando.v1.DataPath/Batch")
# The largest number of calls that pandod takes at once.
LARGEST = 256

_REQUESTS = data_path_pb2.BatchRequest.REQUESTS_FIELD_NUMBER


class Answer(Generic[T]):
    """The result, or the error, of a call that was begun without waiting: a call of a
    batch, or a single begun insert. Used by one thread at a time."""

    def __init__(self) -> None:
        self._result: T | None = None
        self._error: BaseException | None = None
        self._is_there = False
        self._finish: Callable[[], T] | None = None

    def result(self) -> T:
        """Returns the result of the call, and waits for it if needed. Raises the error
        that the call would have raised by itself, or RuntimeError before the batch was
        sent."""
        self.wait()
        if not self._is_there:
            raise RuntimeError("the batch was not sent yet")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def begin(self, finish: Callable[[], T]) -> None:
        """Marks the call as begun. `finish` waits for its result and returns it."""
        self._finish = finish

    def wait(self) -> None:
        """Waits until a begun call has its result or its error."""
        if self._finish is None:
            return
        finish, self._finish = self._finish, None
        try:
            self.set(finish())
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise

    def set(self, result: T) -> None:
        self._result, self._is_there = result, True

    def fail(self, error: BaseException) -> None:
        self._error, self._is_there = error, True


class BatchAnswer(Answer[T]):
    """The answer of one call of a batch, together with the call."""

    def __init__(self, call: Call[T]) -> None:
        super().__init__()
        self.call = call


class CallList(Generic[LockT]):
    """The calls of a batch, in order. Each method takes the arguments of the client's
    method of the same name. One thread or task adds and sends the calls."""

    def __init__(self, sessions: SessionTracker, make_lock: LockMaker[LockT]) -> None:
        self._sessions = sessions
        self._make_lock = make_lock
        self._answers: list[BatchAnswer[Any]] = []

    def match_prefix(self, tokens: Any, **options: Any) -> Answer[Match[LockT]]:
        return self._add(
            _prefix_calls.match_prefix(
                self._sessions, self._make_lock, tokens, **options
            )
        )

    def insert(self, tokens: Any, page_ids: Any, **options: Any) -> Answer[Insert]:
        return self._add(
            _prefix_calls.insert(self._sessions, tokens, page_ids, **options)
        )

    def lock(self, tokens: Any, **options: Any) -> Answer[LockT]:
        return self._add(
            _prefix_calls.lock(self._sessions, self._make_lock, tokens, **options)
        )

    def unlock(self, *locks: LockHandle) -> Answer[None]:
        """Adds the release of locks. Locks that were released already are skipped."""
        call = _prefix_calls.unlock(self._sessions, locks)
        if call is not None:
            return self._add(call)
        nothing: Answer[None] = Answer()
        nothing.set(None)
        return nothing

    def allocate_pages(self, pages: int, **options: Any) -> Answer[Uint32Array]:
        return self._add(_pool_calls.allocate_pages(self._sessions, pages, **options))

    def free_pages(self, page_ids: Any, **options: Any) -> Answer[None]:
        return self._add(_pool_calls.free_pages(self._sessions, page_ids, **options))

    def lookup_blocks(
        self, keys: Sequence[BlockKeys], *, load: bool = False, peek: bool = False
    ) -> Answer[Uint32Array]:
        return self._add(
            _block_calls.lookup_blocks(self._sessions, keys, load=load, peek=peek)
        )

    def acquire_blocks(
        self,
        lock: int,
        keys: Sequence[BlockKeys],
        *,
        all: bool = False,
        load: bool = False,
    ) -> Answer[Uint32Array]:
        return self._add(
            _block_calls.acquire_blocks(self._sessions, lock, keys, all=all, load=load)
        )

    def reserve_blocks(
        self, reservation: int, keys: Sequence[BlockKeys], *, all: bool = False
    ) -> Answer[Uint32Array]:
        return self._add(
            _block_calls.reserve_blocks(self._sessions, reservation, keys, all=all)
        )

    def publish_blocks(self, reservation: int, indices: Any = ()) -> Answer[None]:
        return self._add(
            _block_calls.publish_blocks(self._sessions, reservation, indices)
        )

    def discard_blocks(self, reservation: int, indices: Any = ()) -> Answer[None]:
        return self._add(
            _block_calls.discard_blocks(self._sessions, reservation, indices)
        )

    def release_blocks(self, locks: Sequence[int]) -> Answer[None]:
        return self._add(_block_calls.release_blocks(self._sessions, locks))

    def _add(self, call: Call[T]) -> Answer[T]:
        answer = BatchAnswer(call)
        self._answers.append(answer)
        return answer

    def _take(self) -> list[BatchAnswer[Any]]:
        """Removes the calls to be sent next from the batch, and returns their
        answers."""
        answers, self._answers = self._answers[:LARGEST], self._answers[LARGEST:]
        return answers

    def _give_up(self) -> None:
        """Drops the calls without sending them. Locks that the calls would have
        released stay held."""
        error = RuntimeError("the batch was not sent")
        give_up([(answer, None) for answer in self._answers], error)
        self._answers = []


def give_up(
    untaken: Iterable[tuple[BatchAnswer[Any], E | None]], error: BaseException
) -> list[tuple[Call[Any], E]]:
    """Ends the answers, which will not be taken any more, with this error. Locks are
    held again if the calls that would have released them have not begun. Returns the
    begun calls, each with its exchange."""
    begun = []
    for answer, first in untaken:
        answer.fail(error)
        call = answer.call
        if first is not None:
            begun.append((call, first))
            if call.moves is not None:
                call.moves.lose_end()
        else:
            for lock in call.releases:
                lock.restore()
    return begun


def longest_wait(calls: Iterable[Call[Any]]) -> float:
    return max(call.pending_wait for call in calls)


def may_go_one_by_one(error: PandoError) -> bool:
    """Returns whether each call may be made by itself, because pandod does not know
    batches or its answer did not come. That is safe, because calls that change
    something carry a request id or a name that the client chose."""
    return is_unsettled(error) or error.reason == "UNIMPLEMENTED"


def batch_entry(call: Call[Any]) -> bytes | Exception:
    """Returns the call encoded as a part of a batch, or the error that its request
    raises when it is encoded."""
    try:
        request = call.method.request.encode(first_request(call))
    except Exception as error:
        return error
    return nested(_REQUESTS, nested(call.method.number, request))


def batch_answers(
    calls: Iterable[Call[Any]], data: bytes
) -> Iterator[tuple[Any, PandoError | None]]:
    """Yields for each call its decoded answer and None, or None and its error."""
    response = data_path_pb2.BatchResponse.FromString(data)
    for call, each in zip(calls, response.responses, strict=True):
        which = each.WhichOneof("response")
        message: Message = getattr(each, which)
        if which == "error":
            yield None, from_status(message.SerializeToString())
        else:
            yield call.method.response.decode(message.SerializeToString()), None
