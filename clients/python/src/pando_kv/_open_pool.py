"""How a pool that is open takes its layout from the first worker."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pando_kv._call import Call
from pando_kv._pool_calls import say_layout
from pando_kv._session import SessionTracker
from pando_kv.errors import SessionLostError, UnavailableError
from pando_kv.layout import KvLayout

PAUSE = 0.02
# pandod begins anew with the layout.
BEGINS_ANEW = (UnavailableError, SessionLostError)


def calls(
    sessions: SessionTracker, layout: KvLayout | None, model: str | None, timeout: float
) -> Iterator[Call[None] | None]:
    """The calls to be made, PAUSE seconds apart, until the pool has a layout: this one
    or that of another worker who came first. None: only to wait. An error of
    BEGINS_ANEW ends nothing.

    Raises UnavailableError where there is no pool with a layout after `timeout`
    seconds.
    """
    deadline = time.monotonic() + timeout
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
                f"the open pool has no layout after {timeout} s; the log of pandod "
                "says why it does not begin anew",
            )
        yield None if session is None else say_layout(session, layout, model)
