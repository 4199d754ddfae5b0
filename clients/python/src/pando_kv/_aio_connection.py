"""The connection of the asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, TypeVar

import grpc

from pando_kv import _prefix_calls
from pando_kv._aio_lane import AnswerWaits
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
    open_lane_request,
    take,
)
from pando_kv._locks import LockHandle
from pando_kv._methods import Method
from pando_kv._refused_user import why_user_is_refused
from pando_kv._session import OPEN_METHOD, SessionTracker
from pando_kv.errors import PandoError, UnavailableError, from_rpc_error

T = TypeVar("T")
R = TypeVar("R")


# Sends a request of the call and returns the decoded answer; the float is the timeout
# in seconds.
Exchange = Callable[[Call[Any], Any, float], Awaitable[Any]]

# The longest time, in seconds, that a call on the lane may block the event loop. Nearly
# all answers come sooner, and a switch to another task would take longer.
_PATIENCE = 0.0002


class Connection:
    """The gRPC channel of an asyncio client, its lane if there is one, and the task
    that keeps the session alive. Owned by an AsyncClient or AsyncOperator and used from
    its event loop only."""

    def __init__(
        self,
        access: Access,
        sessions: SessionTracker,
        timeout: float,
        lane: bool = False,
    ) -> None:
        self.sessions = sessions
        self.timeout = timeout
        self.lane = ClientLane(lane, access.address)
        self._lane_decided = asyncio.Event()
        self._answer_waits: AnswerWaits | None = None
        asyncio.get_running_loop()  # fails here, not later
        self._address = access.address
        self._channel = access.channel(grpc.aio)
        self._metadata = access.metadata
        self._methods: dict[str, Any] = {}
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Tasks that settle calls without an answer. The event loop keeps only weak
        # references to tasks, so they are kept here.
        self._unsettled: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self.sessions.require_open()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_session(), name="pando-session")
        first = asyncio.wrap_future(self.sessions.first)
        try:
            await asyncio.wait_for(asyncio.shield(first), self.timeout)
        except asyncio.TimeoutError:
            refused = await asyncio.to_thread(why_user_is_refused, self._address)
            raise self.sessions.not_opened(self.timeout, refused) from None
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._lane_decided.wait(), self.timeout)

    async def send(
        self,
        call: Call[T],
        first: Exchange | None = None,
        late: Exchange | None = None,
    ) -> T:
        """Makes a call and returns its answer. `first` is the exchange that was started
        already, for a call of a batch. `late` can still collect the answer of that
        exchange after the first attempt to do so has failed.

        If the call ends without an answer, or its caller is cancelled, pandod may still
        have carried it out, and only its answer says what to give back. A background
        task then waits for the answer, or repeats the call until there is one, and
        gives back the locks and pages that the call obtained.
        """
        if first is None and self._goes_by_lane(call):
            self.sessions.require_open()
            pending = self.lane.submit([(call, first_request(call))])[0]
            if pending is not None:
                if pending.ready(_PATIENCE):
                    # Nearly all calls succeed and end here.
                    with contextlib.suppress(Exception):
                        return call.parse(take(pending, 0))
                first = late = self._begun_on_lane(pending)
        if call.repeats_in is None:
            return await self._attempt(call, first)
        taking = asyncio.create_task(self._attempt(call, first))
        try:
            return await asyncio.shield(taking)
        except BaseException as error:
            if is_unsettled(error):
                if call.moves is not None:
                    call.moves.lose_end()
                self._settle_in_background(taking, call, late)
            raise

    async def attach(self, call: Callable[[], Call[T]], take: Callable[[T], R]) -> R:
        """Makes a call that returns a token, and exchanges the token for memory at the
        memory socket. If pandod dies before it has answered, both steps are repeated
        while the session lives."""
        repeats = Repeats(self.sessions, self.timeout)
        while True:
            try:
                return await asyncio.to_thread(take, await self.send(call()))
            except PandoError as error:
                await asyncio.sleep(repeats.pause_after(error))

    async def send_together(self, answers: Sequence[BatchAnswer[Any]]) -> None:
        """Sends calls in their order and waits for their answers. A lane takes them
        with one doorbell, gRPC as one call. There must be no more calls than pandod
        accepts at once.

        If the awaiting task is cancelled, the answers are dropped, and locks and pages
        that the calls obtained are given back.
        """
        untaken: Iterable[tuple[BatchAnswer[Any], Exchange | None]]
        untaken = zip(answers, repeat(self._exchange_over_grpc), strict=False)
        try:
            begun = await self._begin_together([answer.call for answer in answers])
            untaken = zip(answers, begun, strict=True)
            for answer, first in untaken:
                try:
                    answer.set(await self.send(answer.call, first, first))
                except BaseException as error:
                    answer.fail(error)
                    if not isinstance(error, Exception):
                        raise
        except BaseException as error:
            for call, first in give_up(untaken, error):
                if call.repeats_in is not None:
                    taking = asyncio.create_task(self._attempt(call, first))
                    self._settle_in_background(taking, call, first)
            raise

    async def unlock(self, *locks: LockHandle) -> None:
        call = _prefix_calls.unlock(self.sessions, locks)
        if call is not None:
            await self.send(call)

    def stream(self, method: str, request: bytes, timeout: float | None = None) -> Any:
        """Starts a streaming call and returns the stream of its messages. cancel() ends
        the stream."""
        self.sessions.require_open()
        return self._channel.unary_stream(method)(
            request, timeout=timeout, metadata=self._metadata
        )

    async def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT)
            self._task.cancel()
        # Closing the lane and the channel ends all calls; pandod frees their locks and
        # pages with the session.
        self.lane.close("the client is closed")
        await self._channel.close()
        await asyncio.gather(*self._unsettled, return_exceptions=True)

    def _method(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = self._channel.unary_unary(name)
        return method

    async def _attempt(
        self,
        call: Call[T],
        first: Exchange | None = None,
        timeout: float | None = None,
    ) -> T:
        """Makes a call, with repetitions where they are allowed, and returns its parsed
        answer. If `first` is given, it is the started exchange that serves as the first
        attempt."""
        attempts = Attempts(
            call, self.sessions, self.timeout if timeout is None else timeout
        )
        exchange = first or self._exchange
        try:
            while True:
                request, timeout = attempts.next()
                try:
                    answer = await exchange(attempts.call, request, timeout)
                    return attempts.call.parse(answer)
                except NoAnswerError:
                    exchange = self._exchange_over_grpc
                except PandoError as error:
                    exchange = self._exchange
                    await asyncio.sleep(attempts.pause_after(error))
        except BaseException as error:
            attempts.failed(error)
            raise

    async def _begin_together(
        self, calls: Sequence[Call[Any]]
    ) -> list[Exchange | None]:
        """Starts the calls and returns the exchange of each, or None for a call that
        still has to be started."""
        if self.lane.is_open:
            pending = self.lane.submit([(call, first_request(call)) for call in calls])
            return [each and self._begun_on_lane(each) for each in pending]
        entries = [batch_entry(call) for call in calls]
        sent = {
            call: entry
            for call, entry in zip(calls, entries, strict=True)
            if isinstance(entry, bytes)
        }
        answers = iter(await self._begin_over_grpc(sent))
        return [
            next(answers) if isinstance(entry, bytes) else _ended(None, entry)
            for entry in entries
        ]

    async def _begin_over_grpc(self, entries: dict[Call[Any], bytes]) -> list[Exchange]:
        if not entries:
            return []
        timeout = self.timeout + longest_wait(entries)
        try:
            data = await self._exchange_raw(BATCH, b"".join(entries.values()), timeout)
        except PandoError as error:
            if may_go_one_by_one(error):
                return [self._exchange_over_grpc] * len(entries)
            return [_ended(None, error)] * len(entries)
        return [_ended(*answer) for answer in batch_answers(entries, data)]

    def _begun_on_lane(self, pending: Any) -> Exchange:
        lane = self.lane.native

        async def exchange(_call: Call[Any], _request: Any, timeout: float) -> Any:
            if not pending.done() and lane is not None:
                if self._answer_waits is None or self._answer_waits.lane is not lane:
                    self._answer_waits = AnswerWaits(lane)
                with contextlib.suppress(asyncio.TimeoutError):
                    await self._answer_waits.until_done(pending, timeout)
            return take(pending, 0)

        return exchange

    def _goes_by_lane(self, call: Call[Any]) -> bool:
        return bool(call.method.number) and self.lane.is_open

    async def _exchange(self, call: Call[Any], request: Any, timeout: float) -> Any:
        """Sends one request and returns its answer, over the lane or else over gRPC."""
        if self._goes_by_lane(call):
            pending = self.lane.submit([(call, request)])[0]
            if pending is not None:
                with contextlib.suppress(NoAnswerError):
                    return await self._begun_on_lane(pending)(call, request, timeout)
        return await self._exchange_over_grpc(call, request, timeout)

    async def _exchange_over_grpc(
        self, call: Call[Any], request: Any, timeout: float
    ) -> Any:
        method = call.method
        data = await self._exchange_raw(method, method.request.encode(request), timeout)
        return method.response.decode(data)

    async def _exchange_raw(
        self, method: Method, request: bytes, timeout: float
    ) -> bytes:
        try:
            response: bytes = await self._method(method.path)(
                request, timeout=timeout, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        return response

    def _settle_in_background(
        self, taking: asyncio.Task[T], call: Call[T], late: Exchange | None
    ) -> None:
        task = asyncio.create_task(self._settle(taking, call, late))
        self._unsettled.add(task)
        task.add_done_callback(self._unsettled.discard)

    async def _settle(
        self, taking: asyncio.Task[T], call: Call[T], late: Exchange | None
    ) -> None:
        """Waits until pandod says what became of a call, and repeats the call if its
        answer is lost. When the session ends, pandod frees everything that the call
        obtained."""
        waits = call.pending_wait > 0
        call = without_wait(call) if waits else call
        answer: Awaitable[Any] = taking
        if waits and not taking.done():
            # The caller no longer wants the answer, but a lane cannot learn that a task
            # was cancelled. The same call without the wait either ends the first one or
            # reports what the first one has obtained.
            taking.cancel()
            await asyncio.wait([taking])
            if taking.cancelled():
                answer = self._attempt(call, None, SETTLE_TIMEOUT)
        if waits:
            late = None
        pause = 0.0
        unsettled: Call[Any] | None = call
        while unsettled is not None:
            call = unsettled
            try:
                given = await answer
                unsettled = call.give_back and call.give_back(given)
            except PandoError as error:
                unsettled = after_settling(call, error)
                await self._pause(pause)
                pause = SETTLE_PAUSE
            if unsettled is not None:
                first = late if unsettled is call else None
                answer = self._attempt(unsettled, first, SETTLE_TIMEOUT)
            late = None

    async def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            try:
                async for event in open_stream(
                    self._requests(), metadata=self._metadata
                ):
                    if self.sessions.handle(event):
                        await self._open_lane()
                error: PandoError = UnavailableError("SESSION_ENDED", "server ended it")
            except grpc.RpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            except PandoError as unusable:
                error = unusable
            self.lane.close(f"the session's stream broke: {error}")
            await self._pause(self.sessions.broken(error))

    async def _open_lane(self) -> None:
        """Opens a lane, if there can be one. Calls go over gRPC until the lane
        is open."""
        try:
            if self.lane.is_wanted:
                session = self.sessions.current()
                request = open_lane_request(session)
                grant = await self._exchange_raw(OPEN_LANE, request, self.timeout)
                await asyncio.to_thread(self.lane.fetch, grant, self.timeout)
        except PandoError as error:
            self.lane.close(str(error))
        finally:
            self._lane_decided.set()

    async def _requests(self) -> AsyncIterator[bytes]:
        """Yields the request that opens the session, then waits for close(). The end of
        this generator half-closes the stream."""
        yield self.sessions.open_request()
        await self._closing.wait()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)


def _ended(answer: Any, error: Exception | None) -> Exchange:
    async def exchange(_call: Call[Any], _request: Any, _timeout: float) -> Any:
        if error is not None:
            raise error
        return answer

    return exchange
