"""The room in a pool, read from its gauge page, because schedulers ask in every
step."""

from __future__ import annotations

import time

import numpy as np

from pando_kv._wire import Uint32Array
from pando_kv.client import Client
from pando_kv.results import PageRoom

_NO_PAGES = np.empty(0, np.uint32)
# Seconds after which a refused call is tried again although the room is the same: a
# limit may have changed instead.
_LONGEST = 1.0


def room_now(client: Client) -> PageRoom | None:
    """Returns the room without a call; None if there is no lane, and so no
    gauge page."""
    if client.transport != "lane":
        return None
    pages = client.gauges().pages
    return PageRoom(pages.free, pages.evictable)


def allocate_what_there_is(client: Client, pages: int) -> Uint32Array:
    """Reserves `pages` pages, or as many as there is room for. Makes no call if there
    is no room."""
    room = room_now(client)
    if room is not None and not room.free + room.evictable:
        return _NO_PAGES
    return client.allocate_pages(pages, at_least=0)


class Refusals:
    """A memory of the last call that was refused for lack of room. The same call is in
    vain until the room has changed, so an engine that waits for room makes no call in
    each step. Owned by a scheduler, and used by its thread only."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._room: PageRoom | None = None
        self._refused: object = None
        self._room_then: PageRoom | None = None
        self._until = 0.0

    def is_in_vain(self, call: object) -> bool:
        """Returns whether the call with this name was the last that was refused, and
        would be refused again. Ask before you make the call."""
        self._room = room_now(self._client)
        return (
            call == self._refused
            and self._room is not None
            and self._room == self._room_then
            and time.monotonic() < self._until
        )

    def add(self, call: object) -> None:
        """Records that pandod refused this call, for which is_in_vain() was
        asked last."""
        self._refused, self._room_then = call, self._room
        self._until = time.monotonic() + _LONGEST
