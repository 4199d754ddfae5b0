"""Fences, which tell when the device has done the work that was queued for it."""

from __future__ import annotations

from typing import Any, Protocol


class Moment(Protocol):
    """A position in the work that is queued for the device."""

    def is_past(self) -> bool: ...

    def wait(self) -> None: ...


class DeviceFence(Protocol):
    """A source of moments for one device. Owned by PandoPrefixCache; the scheduler's
    thread alone uses it."""

    unwritten_tokens: int
    """The number of last tokens of a finished request that a running step may still
    write."""

    def now(self) -> Moment: ...


class Past:
    """A moment of a device whose work is done when the call that queued it returns."""

    def is_past(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class NoFence:
    """The fence of a CPU, and of a GPU whose steps end before the next is scheduled."""

    unwritten_tokens = 0

    def now(self) -> Moment:
        return Past()


class StreamMoment:
    """A moment that an event on a stream of the device marks."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def is_past(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()


class StreamFence:
    """The fence of a GPU whose steps overlap with scheduling. The events are recorded
    on the stream of the steps."""

    # SGLang learns that a request has ended when the next step is already running.
    unwritten_tokens = 1

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def now(self) -> Moment:
        return StreamMoment(self._stream.record_event())
