"""Interrupts the main thread, as Ctrl+C does."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from eventually import eventually


class Interrupted(BaseException):
    """Not KeyboardInterrupt, which would end the tests."""


@contextlib.contextmanager
def interrupted_when(holds: Callable[[], bool]) -> Iterator[None]:
    """The block is interrupted once this holds."""

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
