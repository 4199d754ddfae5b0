"""Interrupts of the main thread, as by Ctrl+C."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from eventually import eventually


class Interrupted(BaseException):
    """An exception in the place of KeyboardInterrupt, which would end the tests."""


@contextlib.contextmanager
def interrupted_when(holds: Callable[[], bool]) -> Iterator[None]:
    """Interrupts the block once `holds()` is true, and checks that the block ends."""

    def interrupt(*_):
        raise Interrupted

    def watch():
        eventually(holds)
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=watch).start()
        with pytest.raises(Interrupted):
            yield
    finally:
        signal.signal(signal.SIGUSR1, before)
