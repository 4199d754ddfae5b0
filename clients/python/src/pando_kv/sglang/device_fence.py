"""When the device has done what was queued for it."""

from __future__ import annotations

from typing import Any, Protocol


class Moment(Protocol):
    """A place in the work queued for the device."""

    def is_past(self) -> bool: ...

    def wait(self) -> None: ...


class DeviceFence(Protocol):
    unwritten_tokens: int
    """The last tokens of a finished request that a step under way may still write."""

    def now(self) -> Moment: ...


class Past:
    """The moment of a device that is done when a call returns."""

    def is_past(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class NoFence:
    """For a CPU, and where each step is awaited before the next is scheduled."""

    unwritten_tokens = 0

    def now(self) -> Moment:
        return Past()


class StreamMoment:
    def __init__(self, event: Any) -> None:
        self._event = event

    def is_past(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()


class StreamFence:
    """For a GPU whose steps overlap with scheduling: follows the steps' stream."""

    # SGLang learns of a request's end when its next step is under way already.
    unwritten_tokens = 1

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def now(self) -> Moment:
        return StreamMoment(self._stream.record_event())
