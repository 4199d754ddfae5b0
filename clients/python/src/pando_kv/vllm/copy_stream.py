"""Where a worker's copies are queued, and how they and the steps wait for each other.

A GPU does what one stream is given in order. Copies are queued either among the steps,
or on a stream of their own. There a save begins when its step is over, but a load,
which vLLM queues after the step that others compute meanwhile, when the steps before
that are. On a CPU copies are done at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch


class Event(Protocol):
    """The end of copies: torch.cuda.Event, as far as it is used."""

    def query(self) -> bool:
        """Whether they are over."""
        ...

    def wait(self) -> None:
        """What is queued for steps from now on comes after them."""
        ...

    def synchronize(self) -> None:
        """Returns when they are over."""
        ...


class CopyStream(Protocol):
    """Owned by a worker; its thread alone calls it."""

    def begin_step(self) -> None:
        """Before anything of the next step is queued."""
        ...

    def load(self, copies: Callable[[], None]) -> Event:
        """They come after the steps before the one that has begun: it neither reads nor
        writes what they write to. `copies` does not raise."""
        ...

    def save(self, copies: Callable[[], None]) -> Event:
        """They come after the steps that are queued by now. `copies` does not raise."""
        ...


def stream_of(device: torch.device, is_own: bool) -> CopyStream:
    if device.type == "cpu":
        return _InLine()
    return _OwnStream(device) if is_own else _StreamOfSteps(device)


class Over:
    """Nothing is under way."""

    def query(self) -> bool:
        return True

    def wait(self) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _InLine:
    def begin_step(self) -> None:
        pass

    def load(self, copies: Callable[[], None]) -> Event:
        copies()
        return Over()

    save = load


class _StreamOfSteps:
    def __init__(self, device: torch.device) -> None:
        self._device = device

    def begin_step(self) -> None:
        pass

    def load(self, copies: Callable[[], None]) -> Event:
        copies()
        event: Event = torch.cuda.current_stream(self._device).record_event()
        return event

    save = load


class _OwnStream:
    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._before = torch.cuda.current_stream(device).record_event()

    def begin_step(self) -> None:
        self._before = torch.cuda.current_stream(self._device).record_event()

    def load(self, copies: Callable[[], None]) -> Event:
        self._stream.wait_event(self._before)
        return self._queue(copies)

    def save(self, copies: Callable[[], None]) -> Event:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        return self._queue(copies)

    def _queue(self, copies: Callable[[], None]) -> Event:
        with torch.cuda.stream(self._stream):
            copies()
        event: Event = self._stream.record_event()
        return event
