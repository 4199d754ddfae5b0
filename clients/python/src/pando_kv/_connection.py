"""The connection of the blocking client."""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from itertools import repeat
from typing import Any, TypeVar

import grpc

from pando_kv import _prefix_calls
from pando_kv._attaching import Repeats
from pando_kv._batch import (
    BATCH,
    BatchAnswer,
    batch_answers,
    batch_entry,
    give_up,
    longest_wait,
    may_go_one_by_one,
)
from pando_kv._call import (
    Attempts,
    Begun,
    Call,
    after_settling,
    first_request,
    is_unsettled,
    without_wait,
)
from pando_kv._channel import CLOSE_TIMEOUT, SETTLE_PAUSE, SETTLE_TIMEOUT, Access
from pando_kv._lane import (
    OPEN_LANE,
    ClientLane,
    NoAnswerError,
    as_pando_error,
    checked,
    is_pending,
    open_lane_request,
    take,
)
from pando_kv._locks import LockHandle, claim_held
from pando_kv._methods import Method
from pando_kv._presence import Presence
from pando_kv._refused_user import why_user_is_refused
from pando_kv._session import OPEN_METHOD, SessionTracker
from pando_kv.errors import AwayError, PandoError, UnavailableError, from_rpc_error

T = TypeVar("T")
R = TypeVar("R")


# Sends a request of the call and returns the decoded answer; the float is the timeout
# in seconds.
Exchange = Callable[[Call[Any], Any, float], Any]


class Connection:
    """The gRPC channel of a blocking client, its lane if there is one, and, after
    open(), the thread that keeps the session alive. Owned by a Client or Operator; any
    thread may call it."""

    def __init__(
        self,
        access: Access,
        sessions: SessionTracker,
        timeout: float,
        lane: bool = False,
        away_after: float | None = None,
    ) -> None:
        self.sessions = sessions
        self.timeout = timeout
        self.lane = ClientLane(lane, access.address)
        self._lane_decided = threading.Event()
        self._address = access.address
        self._channel = access.channel(grpc)
        self._metadata = access.metadata
        self._methods: dict[str, Any] = {}
        self._closing = threading.Event()
        self.presence = Presence(away_after, self._is_answered, self._closing)
        # The requests of the current session stream; None half-closes the stream.
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._keep_session, name="pando-session", daemon=True
        )

    def open(self) -> None:
        self._thread.start()
        try:
            self.sessions.first.result(self.timeout)
        except FutureTimeoutError:
            refused = why_user_is_refused(self._address)
            raise self.sessions.not_opened(self.timeout, refused) from None
        self._lane_decided.wait(self.timeout)

    def send(
        self,
        call: Call[T],
        first: Exchange | None = None,
        late: Exchange | None = None,
    ) -> T:
        """Makes a call and returns its answer. `first` is the exchange that was started
        already, for a call of a batch or one that the native module has begun. `late`
        can still collect the answer of that exchange after the first attempt to do so
        has failed.

        If the call ends without an answer, a background thread waits for the answer, or
        repeats the call until there is one, and gives back the locks and pages that the
        call obtained.
        """
        lane, method = self.lane.native, call.method
        is_away = self.presence.is_away and method.number
        if is_away and first is None:
            return self._put_off(call)
        timeout = 0.0 if is_away else self._timeout(call)
        if first is None and lane is not None and method.number:
            # Nearly all calls are answered here.
            try:
                answer = lane.call(
                    method.number,
                    method.request,
                    first_request(call),
                    call.answer_bytes,
                    method.response,
                    timeout + call.pending_wait,
                )
                if type(answer) is tuple:
                    return call.parse(answer)
                first, late = _ended_on_lane(answer), _late(answer)
            except BaseException as error:
                first = _ended(None, as_pando_error(error))
        try:
            return self._attempt(call, timeout, first)
        except BaseException as error:
            self.presence.missed(call, error)
            if is_unsettled(error):
                self._settle_in_background([(call, late)])
            raise

    def attach(self, call: Callable[[], Call[T]], take: Callable[[T], R]) -> R:
        """Makes a call that returns a token, and exchanges the token for memory at the
        memory socket. If pandod dies before it has answered, both steps are repeated
        while the session lives."""
        repeats = Repeats(self.sessions, self.patience)
        while True:
            try:
                return take(self.send(call()))
            except PandoError as error:
                time.sleep(repeats.pause_after(error))

    def send_together(self, answers: Sequence[BatchAnswer[Any]]) -> None:
        """Sends calls in their order and waits for their answers. A lane takes them
        with one doorbell, gRPC as one call. There must be no more calls than pandod
        accepts at once.

        If the caller is interrupted, the answers are dropped, and locks and pages that
        the calls obtained are given back.
        """
        untaken: Iterable[tuple[BatchAnswer[Any], Exchange | None]]
        untaken = zip(answers, repeat(self._exchange_over_grpc), strict=False)
        try:
            begun = self._begin_together([answer.call for answer in answers])
            untaken = zip(answers, begun, strict=True)
            for answer, first in untaken:
                try:
                    answer.set(self.send(answer.call, first, first))
                except BaseException as error:
                    answer.fail(error)
                    if not isinstance(error, Exception):
                        raise
        except BaseException as error:
            self._settle_in_background(give_up(untaken, error))
            raise

    def begin_together(self, answers: Sequence[BatchAnswer[Any]]) -> None:
        """Sends calls as send_together does, but does not wait for calls that are under
        way on a lane: the result() of each answer waits."""
        untaken: Iterable[tuple[BatchAnswer[Any], Exchange | None]]
        untaken = zip(answers, repeat(self._exchange_over_grpc), strict=False)
        try:
            begun = self._begin_together([answer.call for answer in answers])
            untaken = zip(answers, begun, strict=True)
            for answer, first in untaken:
                answer.begin(functools.partial(self.send, answer.call, first, first))
                if first is None:
                    answer.wait()
        except BaseException as error:
            self._settle_in_background(give_up(untaken, error))
            raise

    def unlock(self, *locks: LockHandle) -> None:
        claimed = claim_held(self.sessions, locks)
        if not claimed:
            return
        calls = self.requests
        begun = calls and calls.unlock(self.patience, claimed[0].session, claimed)
        if begun is not True:
            self.go_on(_prefix_calls.unlock_claimed(claimed, begun), begun)

    @property
    def requests(self) -> Any:
        """The native module's calls of requests; None if there is no lane, or while
        pandod is away."""
        return None if self.presence.is_away else self.lane.requests

    @property
    def patience(self) -> float:
        """The timeout of the calls of requests in seconds, without their
        `pending_wait`."""
        away_after = self.presence.away_after
        return self.timeout if away_after is None else away_after

    def go_on(self, call: Call[T], begun: Begun | None) -> T:
        """Makes a call as send() does, and continues one that the native module may
        have begun."""
        if begun is None:
            return self.send(call)
        return self.send(call, _ended_on_lane(begun.answer), _late(begun.answer))

    def _timeout(self, call: Call[Any]) -> float:
        return self.patience if call.method.number else self.timeout

    def _is_answered(self) -> bool:
        """Returns whether pandod answers a call that asks for nothing."""
        nothing = _prefix_calls.nothing()
        try:
            self._attempt(nothing, self._timeout(nothing))
        except PandoError as error:
            return not is_unsettled(error)
        return True

    def _put_off(self, call: Call[T]) -> T:
        """Handles a call while pandod is away: puts off a call that may be made later,
        and raises AwayError for any other call. Makes the call if pandod is back."""
        if not call.only_gives_back:
            for lock in call.releases:
                lock.restore()
            raise AwayError("AWAY", "pandod has not answered; the call was not made")
        if self.presence.put_off(functools.partial(self._settle, call, None)):
            return call.parse(())
        return self.send(call)

    def _attempt(
        self, call: Call[T], timeout: float, first: Exchange | None = None
    ) -> T:
        """Makes a call, with repetitions where they are allowed, and returns its parsed
        answer. If `first` is given, it is the started exchange that serves as the first
        attempt."""
        attempts = Attempts(call, self.sessions, timeout)
        exchange = first or self._exchange
        try:
            while True:
                request, timeout = attempts.next()
                try:
                    answer = exchange(attempts.call, request, timeout)
                    return attempts.call.parse(answer)
                except NoAnswerError:
                    exchange = self._exchange_over_grpc
                except PandoError as error:
                    exchange = self._exchange
                    time.sleep(attempts.pause_after(error))
        except BaseException as error:
            attempts.failed(error)
            raise

    def _begin_together(self, calls: Sequence[Call[Any]]) -> list[Exchange | None]:
        """Starts the calls and returns the exchange of each, or None for a call that
        still has to be started."""
        if self.presence.is_away:
            return [None] * len(calls)
        if self.lane.is_open:
            pending = self.lane.submit([(call, first_request(call)) for call in calls])
            return [each and _begun_on_lane(each) for each in pending]
        entries = [batch_entry(call) for call in calls]
        sent = {
            call: entry
            for call, entry in zip(calls, entries, strict=True)
            if isinstance(entry, bytes)
        }
        answers = iter(self._begin_over_grpc(sent))
        return [
            next(answers) if isinstance(entry, bytes) else _ended(None, entry)
            for entry in entries
        ]

    def _begin_over_grpc(self, entries: dict[Call[Any], bytes]) -> list[Exchange]:
        if not entries:
            return []
        some_call = next(iter(entries))
        timeout = self._timeout(some_call) + longest_wait(entries)
        try:
            data = self._exchange_raw(BATCH, b"".join(entries.values()), timeout)
        except PandoError as error:
            self.presence.missed(some_call, error)
            if may_go_one_by_one(error):
                return [self._exchange_over_grpc] * len(entries)
            return [_ended(None, error)] * len(entries)
        return [_ended(*answer) for answer in batch_answers(entries, data)]

    def _exchange(self, call: Call[Any], request: Any, timeout: float) -> Any:
        """Sends one request and returns its answer, over the lane or else over gRPC."""
        try:
            return self.lane.call(call, request, timeout)
        except NoAnswerError:
            return self._exchange_over_grpc(call, request, timeout)

    def _exchange_over_grpc(self, call: Call[Any], request: Any, timeout: float) -> Any:
        method = call.method
        data = self._exchange_raw(method, method.request.encode(request), timeout)
        return method.response.decode(data)

    def _exchange_raw(self, method: Method, request: bytes, timeout: float) -> bytes:
        try:
            response: bytes = self._method(method.path)(
                request, timeout=timeout, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        return response

    def stream(
        self, method: str, request: bytes, timeout: float | None = None
    ) -> Iterator[bytes]:
        """Starts a streaming call and returns its messages. cancel() ends the
        stream."""
        self.sessions.require_open()
        messages: Iterator[bytes] = self._channel.unary_stream(method)(
            request, timeout=timeout, metadata=self._metadata
        )
        return messages

    def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        self._requests.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT)
        self.lane.close("the client is closed")
        self._channel.close()

    def _method(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = self._channel.unary_unary(name)
        return method

    def _settle_in_background(
        self, begun: Sequence[tuple[Call[Any], Exchange | None]]
    ) -> None:
        """Settles calls without an answer in one background thread, or after pandod is
        back."""

        def settle() -> None:
            for call, first in begun:
                if call.repeats_in is not None:
                    self._settle(call, first)

        if any(call.repeats_in for call, _ in begun) and not self.presence.put_off(
            settle
        ):
            threading.Thread(target=settle, daemon=True).start()

    def _settle(self, call: Call[Any], first: Exchange | None) -> None:
        """Repeats a call until pandod says what became of it. When the session ends,
        pandod frees everything that the call obtained."""
        if call.pending_wait:
            # The caller no longer wants the answer, so the repeated call does not wait.
            call, first = without_wait(call), None
        if call.undo is not None and first is None:
            call = call.undo()
        unsettled: Call[Any] | None = call
        while unsettled is not None:
            call = unsettled
            try:
                answer = self._attempt(call, SETTLE_TIMEOUT, first)
                unsettled = call.give_back and call.give_back(answer)
            except PandoError as error:
                if self._closing.wait(SETTLE_PAUSE):
                    return
                unsettled = after_settling(call, error)
            first = None

    def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            self._requests = requests
            requests.put(self.sessions.open_request())
            # close() may have run between the check above and the change of the queue.
            if self._closing.is_set():
                requests.put(None)
            try:
                for event in open_stream(
                    iter(requests.get, None), metadata=self._metadata
                ):
                    if self.sessions.handle(event):
                        self._open_lane()
                error: PandoError = UnavailableError("SESSION_ENDED", "server ended it")
            except grpc.RpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            except PandoError as unusable:
                error = unusable
            requests.put(None)
            self.lane.close(f"the session's stream broke: {error}")
            self._closing.wait(self.sessions.broken(error))

    def _open_lane(self) -> None:
        """Opens a lane, if there can be one. Calls go over gRPC until the lane
        is open."""
        try:
            if self.lane.is_wanted:
                session = self.sessions.current()
                request = open_lane_request(session)
                grant = self._exchange_raw(OPEN_LANE, request, self.timeout)
                self.lane.fetch(grant, self.timeout)
                self.lane.open_requests(self.sessions, session)
        except PandoError as error:
            self.lane.close(str(error))
        finally:
            self._lane_decided.set()


def _begun_on_lane(pending: Any) -> Exchange:
    return lambda _call, _request, timeout: take(pending, timeout)


def _ended_on_lane(answer: Any) -> Exchange:
    return lambda _call, _request, _timeout: checked(answer)


def _late(answer: Any) -> Exchange | None:
    return _begun_on_lane(answer) if is_pending(answer) else None


def _ended(answer: Any, error: BaseException | None) -> Exchange:
    def exchange(_call: Call[Any], _request: Any, _timeout: float) -> Any:
        if error is not None:
            raise error
        return answer

    return exchange
