"""The calls by which an open pool takes its layout from the first worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pando_kv._call import Call
from pando_kv._pool_calls import say_layout
from pando_kv._session import SessionTracker
from pando_kv.errors import DrainingError, SessionLostError, UnavailableError
from pando_kv.layout import KvLayout

PAUSE = 0.02
# Seconds that pandod may take to make its pool. GPU drivers start slowly.
_PATIENCE = 60.0
# The errors of calls that are under way while pandod restarts itself with the layout.
BEGINS_ANEW = (UnavailableError, SessionLostError)


T = TypeVar("T")


@contextmanager
def while_it_begins_anew() -> Iterator[None]:
    """Suppresses the errors of a call that pandod did not answer because it restarted
    itself with the layout. Raises DrainingError nevertheless."""
    try:
        yield
    except DrainingError:
        raise
    except BEGINS_ANEW:
        pass


def at_start(attempt: Callable[[], T]) -> T:
    """Runs a startup step of an engine, and repeats it for up to a minute if pandod
    restarts itself meanwhile, because another engine may have stated the layout."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return attempt()
        except BEGINS_ANEW:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def calls(
    sessions: SessionTracker, layout: KvLayout | None, model: str | None, timeout: float
) -> Iterator[Call[None] | None]:
    """Yields the calls to be made, PAUSE seconds apart, until the pool has a layout:
    this one, or that of a worker that came first. None means only to wait. Make the
    calls within while_it_begins_anew().

    Raises UnavailableError if the pool has no layout after a minute, or after `timeout`
    seconds if that is longer.
    """
    patience = max(timeout, _PATIENCE)
    deadline = time.monotonic() + patience
    while True:
        try:
            session = sessions.current()
        except UnavailableError:
            session = None
        if session is not None and not session.pool.is_open:
            return
        if time.monotonic() > deadline:
            raise UnavailableError(
                "NO_SESSION",
                f"the open pool has no layout after {patience} s; the log of pandod "
                "says why it does not begin anew",
            )
        yield None if session is None else say_layout(session, layout, model)
