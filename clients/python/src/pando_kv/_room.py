"""The room in a pool, read from its gauge page: schedulers ask in every step."""

from __future__ import annotations

import numpy as np

from pando_kv._wire import Uint32Array
from pando_kv.client import Client
from pando_kv.results import PageRoom

_NO_PAGES = np.empty(0, np.uint32)


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
