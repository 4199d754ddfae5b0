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


# Makes a call with its request, within so many seconds.
Exchange = Callable[[Call[Any], Any, float], Awaitable[Any]]

# Seconds that a call on the lane may keep the event loop waiting: nearly all are
# answered sooner, and sooner than the loop could do something else.
_PATIENCE = 0.0002


class Connection:
    """The channel, the lane if there is one, and the task that keeps the session
    alive."""

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
        asyncio.get_running_loop()  # or an error here, rather than a hang later
        self._address = access.address
        self._channel = access.channel(grpc.aio)
        self._metadata = access.metadata
        self._methods: dict[str, Any] = {}
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Calls without an answer; an event loop alone does not keep tasks.
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
        """Makes a call and returns its answer. `first` is the exchange that has begun
        already, if the call is in a batch; `late` goes on with it, where that can be
        done after its end.

        A call that ends without an answer, or whose caller is cancelled, is waited for,
        or repeated, until it has one, by a task of its own, which gives back what the
        call brings: the server may have carried it out, and only the answer says what
        to give back.
        """
        if first is None and self._goes_by_lane(call):
            self.sessions.require_open()
            pending = self.lane.submit([(call, first_request(call))])[0]
            if pending is not None:
                if pending.ready(_PATIENCE):
                    # No more is to be done where it succeeded, as nearly all do.
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
        """Makes a call for a token, and takes what it is for at the memory socket; both
        again, while the session lives, where pandod dies before it has answered."""
        repeats = Repeats(self.sessions, self.timeout)
        while True:
            try:
                return await asyncio.to_thread(take, await self.send(call()))
            except PandoError as error:
                await asyncio.sleep(repeats.pause_after(error))

    async def send_together(self, answers: Sequence[BatchAnswer[Any]]) -> None:
        """Begins calls in their order, with one doorbell, or as one call of gRPC: at
        most as many as pandod takes at once.

        Whose task is cancelled leaves no answer: what the calls may have brought is
        given back.
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
        """The messages of an answer of many; cancel() ends it."""
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
        # Ends all calls; what they brought went with the session.
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
        """`first` is the exchange that the first attempt makes, if it has begun."""
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
        """The first exchange of each call, or None where it is still to begin."""
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
        """One request and its answer, on the lane or else over gRPC."""
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
        """Waits until the server says what became of a call, and repeats it where that
        cannot be. At the end of the session there is nothing left of it."""
        waits = call.pending_wait > 0
        call = without_wait(call) if waits else call
        answer: Awaitable[Any] = taking
        if waits and not taking.done():
            # The caller wants the answer no more, and nothing tells a lane that a task
            # is cancelled. Sent again without the wait, the call ends the first one or
            # learns what that has brought meanwhile.
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
        """Opens a lane, if there can be one. Until then calls go over gRPC."""
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
        """Opens the session; ends, and so half-closes the stream, with close()."""
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
