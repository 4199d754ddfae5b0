"""The lane of a client: shared memory that carries the calls of the data path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pando_kv import results
from pando_kv._call import Begun, Call
from pando_kv._memory_socket import close_all, fetch_memory
from pando_kv._methods import (
    ALLOCATE_PAGES,
    FREE_PAGES,
    INSERT,
    MATCH_PREFIX,
    UNLOCK,
    plain,
)
from pando_kv._native_module import WHY_NOT_NATIVE, native
from pando_kv._proto.pando.v1 import data_path_pb2
from pando_kv._session import Session, SessionTracker
from pando_kv.errors import DeadlineError, PandoError, from_status
from pando_kv.results import Gauges, PageStates

OPEN_LANE = plain("/pando.v1.DataPath/OpenLane")

_RESPONSES = {
    method.number: method.response
    for method in (ALLOCATE_PAGES, FREE_PAGES, INSERT, MATCH_PREFIX, UNLOCK)
}


def open_lane_request(session: Session) -> bytes:
    request = data_path_pb2.OpenLaneRequest(session_id=session.session_id)
    return bytes(request.SerializeToString())


class NoAnswerError(Exception):
    """A call found no room or no answer on the lane, so gRPC must carry the call."""


class Unsent:
    """A stand-in for a submitted call whose request could not be encoded. Its wait()
    raises the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def done(self) -> bool:
        return True

    def ready(self, _timeout: float) -> bool:
        return True

    def wait(self, _timeout: float) -> Any:
        raise self._error


class ClientLane:
    """The lane of one client, or the reason for its absence. Owned by a Connection. One
    thread or task opens and closes it; any thread may make calls."""

    def __init__(self, wanted: bool, address: str) -> None:
        self._why_not = "it is not open yet"
        self.is_wanted = False
        if not wanted:
            self._why_not = "lane=False"
        elif WHY_NOT_NATIVE:
            self._why_not = WHY_NOT_NATIVE
        elif not address.startswith(("/", "unix:")):
            self._why_not = "a lane needs a Unix socket"
        else:
            self.is_wanted = True
        self.native: Any = None
        """The native lane; None if there is none. pandod may have closed the lane."""
        self.requests: Any = None
        """The native module's calls of requests on this lane, each made in one step."""
        self._gauges: Any = None

    @property
    def is_open(self) -> bool:
        lane = self.native
        return lane is not None and not lane.closed

    @property
    def why_not(self) -> str:
        """The reason why there is no lane; empty while the lane is open."""
        if self.is_open:
            return ""
        return self._why_not if self.native is None else "pandod has closed it"

    def fetch(self, grant: bytes, timeout: float) -> None:
        """Fetches the memory of a granted lane from the memory socket. `grant` is the
        answer of OPEN_LANE. Blocks for up to `timeout` seconds. A failure is stored in
        `why_not`."""
        response = data_path_pb2.OpenLaneResponse.FromString(grant)
        try:
            parts = fetch_memory(response.memory_socket, response.token, timeout)
            fds = [fd for fd, _ in parts]
            if len(fds) != 3:
                close_all(fds)
                self._why_not = f"a lane has 3 descriptors; {len(fds)} came"
                return
            memory, doorbell, gauges = fds
            # Lane and Gauges each take over their descriptors.
            try:
                lane = native.Lane(memory, doorbell)
            except BaseException:
                os.close(gauges)
                raise
            self._gauges = native.Gauges(gauges)
            self.native = lane
        except (PandoError, RuntimeError) as error:
            self._why_not = str(error)

    def open_requests(self, sessions: SessionTracker, session: Session) -> None:
        """Prepares the native calls of requests. `session` is the session for which the
        lane was fetched."""
        if self.native is not None:
            self.requests = native.RequestCalls(
                self.native, sessions, session, results, Begun, _RESPONSES
            )

    def close(self, why: str) -> None:
        """Closes the lane. Calls without an answer end on the lane and go over gRPC."""
        lane, self.native, self._gauges = self.native, None, None
        self.requests = None
        if self.is_wanted:
            self._why_not = why
        if lane is not None:
            lane.close()

    def read_gauges(self) -> Gauges | None:
        """Returns the gauges from shared memory without a call; None if there is no
        lane."""
        gauges = self._gauges
        read = gauges.read() if gauges is not None and self.is_open else None
        if read is None:
            return None
        epoch, free, evictable, protected, reserved, quarantined, capacity, *rest = read
        draining, policy = rest
        pages = PageStates(
            free, reserved, evictable, protected, quarantined, 1, capacity
        )
        return Gauges(pages, epoch, draining, policy)

    def call(self, call: Call[Any], request: Any, timeout: float) -> Any:
        """Makes a call on the lane and returns its answer. Raises NoAnswerError if gRPC
        must carry the call."""
        return take(self.submit([(call, request)])[0], timeout)

    def submit(self, calls: Sequence[tuple[Call[Any], Any]]) -> list[Any]:
        """Submits calls and their requests with one doorbell. Returns for each call an
        object that `take` accepts. The first call without room, and all calls after it,
        get None: a later call must not begin before an earlier one."""
        lane = self.native
        if lane is None:
            return [None] * len(calls)
        pending: list[Any] = []
        prepared = []
        for call, request in calls:
            try:
                each = call.method.number and lane.prepare(
                    call.method.number,
                    call.method.request,
                    request,
                    call.answer_bytes,
                    call.method.response,
                )
            except Exception as error:
                pending.append(Unsent(error))
                continue
            if not each:
                break
            prepared.append(each)
            pending.append(each)
        lane.submit(prepared)
        return pending + [None] * (len(calls) - len(pending))


def take(pending: Any, timeout: float) -> Any:
    """Waits up to `timeout` seconds and returns the answer of a submitted call.

    Raises NoAnswerError if gRPC must carry the call, DeadlineError after the timeout.
    """
    if pending is None:
        raise NoAnswerError
    try:
        answer = pending.wait(timeout)
    except TimeoutError as error:
        raise as_pando_error(error) from None
    return checked(answer)


def checked(answer: Any) -> Any:
    """Returns the fields of the response, or raises what the native module gave
    instead: NoAnswerError for None, the error of a serialized status, or the error that
    ended the wait of a pending call."""
    if type(answer) is tuple:
        return answer
    if answer is None:
        raise NoAnswerError
    if is_pending(answer):
        raise as_pando_error(answer.take_error())
    raise from_status(answer)


def is_pending(answer: Any) -> bool:
    return native is not None and type(answer) is native.PendingCall


def as_pando_error(error: BaseException) -> BaseException:
    if isinstance(error, TimeoutError):
        return DeadlineError("DEADLINE_EXCEEDED", "no answer in time on the lane")
    return error
