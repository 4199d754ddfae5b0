"""The blocks that vLLM reports to routers, among its own events.

vLLM reports what this engine stores, and what it finds. pandod tells no engine what it
evicts, so that a thread asks for the reported blocks again, a part at a time.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence

from vllm.v1.kv_offload.base import Medium, OffloadingEvent, OffloadKey

from pando_kv import Client
from pando_kv.blocks import MISSING
from pando_kv.errors import PandoError
from pando_kv.vllm.offloading.kinds_in_use import EngineKinds

# Keys of one call: it holds up no call of the scheduler by more than a part of a
# millisecond.
_PART = 1024
# Seconds between two calls.
_PAUSE = 0.02


class AnnouncedBlocks:
    """Owned by the scheduler's side, whose thread calls it; a thread of its own looks
    for what is gone. A block is reported as stored again each time it is stored."""

    def __init__(self, client: Client, kinds: EngineKinds) -> None:
        self._client = client
        self._kinds = kinds
        self._mutex = threading.Lock()
        self._stores = itertools.count()
        # Each with the number of the store that was reported last. One that is stored
        # anew while the thread asks for it is not gone.
        self._announced: dict[OffloadKey, int] = {}
        self._news: list[OffloadingEvent] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="pando-announced", daemon=True
        )
        self._thread.start()

    def add_stored(self, keys: Iterable[OffloadKey]) -> None:
        with self._mutex:
            for key in keys:
                self._announced[key] = next(self._stores)
                self._tell(key, removed=False)

    def add_found(self, key: OffloadKey) -> None:
        """Reported unless it is already, by whomever it was stored."""
        with self._mutex:
            if key not in self._announced:
                self._announced[key] = next(self._stores)
                self._tell(key, removed=False)

    def take_events(self) -> list[OffloadingEvent]:
        with self._mutex:
            news, self._news = self._news, []
        return news

    def forget(self) -> None:
        """After a reset, which vLLM reports itself."""
        with self._mutex:
            self._announced.clear()
            self._news.clear()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._closing.wait(_PAUSE):
            with self._mutex:
                announced = list(self._announced.items())
            for first in range(0, len(announced), _PART):
                self._look_again(announced[first : first + _PART])
                if self._closing.wait(_PAUSE):
                    return

    def _look_again(self, announced: Sequence[tuple[OffloadKey, int]]) -> None:
        """Nothing is known while pandod does not answer."""
        kinds = self._kinds.now
        if kinds is None:
            return
        named = kinds.name([key for key, _ in announced])
        try:
            places = self._client.lookup_blocks(named, peek=True)
        except PandoError:
            return
        # In another session these numbers are those of other kinds.
        if self._client.generation != kinds.generation:
            return
        with self._mutex:
            for (key, store), place in zip(announced, places.tolist(), strict=True):
                if place == MISSING and self._announced.get(key) == store:
                    del self._announced[key]
                    self._tell(key, removed=True)

    def _tell(self, key: OffloadKey, removed: bool) -> None:
        if self._news and self._news[-1].removed == removed:
            self._news[-1].keys.append(key)
        else:
            self._news.append(OffloadingEvent([key], Medium.CPU, removed))
