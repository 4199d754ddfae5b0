"""The lane of a client: shared memory that carries the calls of the data path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pando_kv._call import Call
from pando_kv._codec import WHY_NOT_NATIVE, native
from pando_kv._memory_socket import close_all, fetch_memory
from pando_kv._methods import plain
from pando_kv._proto.pando.v1 import data_path_pb2
from pando_kv._session import Session
from pando_kv.errors import DeadlineError, PandoError, from_status
from pando_kv.results import Gauges, PageStates

OPEN_LANE = plain("/pando.v1.DataPath/OpenLane")


def open_lane_request(session: Session) -> bytes:
    request = data_path_pb2.OpenLaneRequest(session_id=session.session_id)
    return bytes(request.SerializeToString())


class NoAnswerError(Exception):
    """A call found no room on the lane, or no answer there: gRPC carries it."""


class ClientLane:
    """A lane, or why there is none. One thread or task opens and closes it, any may
    call."""

    def __init__(self, wanted: bool, address: str) -> None:
        self.why_not = "it is not open yet"
        self.is_wanted = False
        if not wanted:
            self.why_not = "lane=False"
        elif WHY_NOT_NATIVE:
            self.why_not = WHY_NOT_NATIVE
        elif not address.startswith(("/", "unix:")):
            self.why_not = "a lane needs a Unix socket"
        else:
            self.is_wanted = True
        self.native: Any = None
        """The lane itself; None: it is not open."""
        self._gauges: Any = None

    @property
    def is_open(self) -> bool:
        return self.native is not None

    def fetch(self, grant: bytes, timeout: float) -> None:
        """Blocks; `grant` is the answer of OPEN_LANE."""
        response = data_path_pb2.OpenLaneResponse.FromString(grant)
        try:
            parts = fetch_memory(response.memory_socket, response.token, timeout)
            fds = [fd for fd, _ in parts]
            if len(fds) != 3:
                close_all(fds)
                self.why_not = f"a lane has 3 descriptors; {len(fds)} came"
                return
            memory, doorbell, gauges = fds
            # Each takes its descriptors over.
            try:
                lane = native.Lane(memory, doorbell)
            except BaseException:
                os.close(gauges)
                raise
            self._gauges = native.Gauges(gauges)
            self.native = lane
        except (PandoError, RuntimeError) as error:
            self.why_not = str(error)

    def close(self, why: str) -> None:
        """Calls that have no answer yet end, and go over gRPC."""
        lane, self.native, self._gauges = self.native, None, None
        if self.is_wanted:
            self.why_not = why
        if lane is not None:
            lane.close()

    def read_gauges(self) -> Gauges | None:
        """Without a call; None when there is no lane."""
        gauges = self._gauges
        read = None if gauges is None else gauges.read()
        if read is None:
            return None
        epoch, free, evictable, protected, reserved, quarantined, capacity, *rest = read
        draining, policy = rest
        pages = PageStates(
            free, reserved, evictable, protected, quarantined, 1, capacity
        )
        return Gauges(pages, epoch, draining, policy)

    def call(self, call: Call[Any], request: Any, timeout: float) -> Any:
        """The answer; NoAnswerError: to be asked for over gRPC."""
        return take(self.submit([(call, request)])[0], timeout)

    def submit(self, calls: Sequence[tuple[Call[Any], Any]]) -> list[Any]:
        """Submits calls and their requests with one doorbell; what `take` takes, or
        None where there is no room."""
        lane = self.native
        if lane is None:
            return [None] * len(calls)
        pending = [
            lane.prepare(
                call.method.number,
                call.method.request,
                request,
                call.answer_bytes,
                call.method.response,
            )
            if call.method.number
            else None
            for call, request in calls
        ]
        lane.submit([each for each in pending if each is not None])
        return pending


def take(pending: Any, timeout: float) -> Any:
    """The answer of a call that was submitted.

    NoAnswerError: it is to be asked for over gRPC.
    """
    if pending is None:
        raise NoAnswerError
    try:
        answer = pending.wait(timeout)
    except TimeoutError as error:
        raise as_pando_error(error) from None
    return checked(answer)


def checked(answer: Any) -> Any:
    """What the native module gives for a call: the fields of the response, or nothing,
    or a serialized status."""
    if type(answer) is tuple:
        return answer
    if answer is None:
        raise NoAnswerError
    raise from_status(answer)


def as_pando_error(error: BaseException) -> BaseException:
    if isinstance(error, TimeoutError):
        return DeadlineError("DEADLINE_EXCEEDED", "no answer in time on the lane")
    return error
