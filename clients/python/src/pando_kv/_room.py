"""The room in a pool, read from its gauge page: schedulers ask in every step."""

from __future__ import annotations

import time

import numpy as np

from pando_kv._wire import Uint32Array
from pando_kv.client import Client
from pando_kv.results import PageRoom

_NO_PAGES = np.empty(0, np.uint32)
# A limit may have changed instead of the room.
_LONGEST = 1.0


def room_now(client: Client) -> PageRoom | None:
    """Without a call; None where there is no lane, and with it no gauge page."""
    if client.transport != "lane":
        return None
    pages = client.gauges().pages
    return PageRoom(pages.free, pages.evictable)


def allocate_what_there_is(client: Client, pages: int) -> Uint32Array:
    """So many pages, or as many as there is room for; no call where there is none."""
    room = room_now(client)
    if room is not None and not room.free + room.evictable:
        return _NO_PAGES
    return client.allocate_pages(pages, at_least=0)


class Refusals:
    """A call that was refused for want of room is in vain until the room has changed:
    an engine that waits for room makes no call in each step. Owned by a scheduler,
    whose thread alone asks."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._room: PageRoom | None = None
        self._refused: object = None
        self._room_then: PageRoom | None = None
        self._until = 0.0

    def is_in_vain(self, call: object) -> bool:
        """Whether the call named so was the last that was refused, and would be again.
        Asked before the call is made."""
        self._room = room_now(self._client)
        return (
            call == self._refused
            and self._room is not None
            and self._room == self._room_then
            and time.monotonic() < self._until
        )

    def add(self, call: object) -> None:
        """The call, about which was asked last, was refused."""
        self._refused, self._room_then = call, self._room
        self._until = time.monotonic() + _LONGEST
