"""The blocks that vLLM reports to routers, among its own events.

vLLM reports what this engine stores, and what it finds. pandod tells no engine what it
evicts, so that a thread asks for the reported blocks again, a part at a time.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterable

from vllm.v1.kv_offload.base import (
    Medium,
    OffloadingEvent,
    OffloadKey,
    get_offload_group_idx,
)

from pando_kv import Client
from pando_kv.blocks import MISSING
from pando_kv.errors import PandoError
from pando_kv.vllm.offloading.kinds_in_use import EngineKinds, KindsInUse

# Keys of one call, and seconds between two.
_PART = 1024
_PAUSE = 0.02


class AnnouncedBlocks:
    """Owned by the scheduler's side, whose thread calls it; a thread of its own looks
    for what is gone.

    Routers count reports: a block is reported as stored once, and then as removed once.
    vLLM forgets a block's tokens with the report that it is removed, so none is made of
    a block that is being stored again.
    """

    def __init__(self, client: Client, kinds: EngineKinds) -> None:
        """Takes the client over, which is none of the scheduler's: an answer that is
        late here says nothing to it."""
        self._client = client
        self._kinds = kinds
        self._opened: KindsInUse | None = None
        self._mutex = threading.Lock()
        # The next ones to be asked for first. Each with a number that is new whenever
        # the engine stores or finds it: an older answer says nothing of it.
        self._announced: OrderedDict[OffloadKey, int] = OrderedDict()
        self._numbers = itertools.count()
        # Since vLLM took the events.
        self._stored: dict[OffloadKey, None] = {}
        self._removed: dict[OffloadKey, None] = {}
        self._is_taken = threading.Event()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="pando-announced", daemon=True
        )
        self._thread.start()

    def add(self, keys: Iterable[OffloadKey]) -> None:
        """This engine has stored them, or found them."""
        with self._mutex:
            for key in keys:
                if not self._is_reported(key):
                    self._stored[key] = None
                self._announced[key] = next(self._numbers)

    def expect(self, keys: Iterable[OffloadKey]) -> None:
        """This engine begins to store them."""
        with self._mutex:
            for key in keys:
                if self._is_reported(key):
                    self._announced[key] = next(self._numbers)

    def take_events(self) -> Iterable[OffloadingEvent]:
        with self._mutex:
            stored, self._stored = list(self._stored), {}
            removed, self._removed = list(self._removed), {}
        self._is_taken.set()
        if stored:
            yield OffloadingEvent(stored, Medium.CPU, False)
        if removed:
            yield OffloadingEvent(removed, Medium.CPU, True)

    def forget(self) -> None:
        """After a reset. vLLM tells routers that all is cleared."""
        with self._mutex:
            self._announced.clear()
            self._stored.clear()
            self._removed.clear()

    def close(self) -> None:
        self._is_closed.set()
        self._is_taken.set()
        self._client.close()
        self._thread.join(1.0)

    def _is_reported(self, key: OffloadKey) -> bool:
        """Takes a report back that it is removed, if vLLM has not taken it yet."""
        if key in self._removed:
            del self._removed[key]
            return True
        return key in self._announced

    def _run(self) -> None:
        """A round over all of them after each taking of events: an engine without steps
        reports nothing."""
        while not self._is_closed.is_set():
            self._is_taken.wait()
            self._is_taken.clear()
            for _ in range(0, len(self._announced), _PART):
                self._look_again()
                if self._is_closed.wait(_PAUSE):
                    return
            if not self._announced:
                self._is_closed.wait(_PAUSE)

    def _look_again(self) -> None:
        """Nothing is known while pandod does not answer."""
        kinds = self._kinds.now
        if kinds is None:
            return
        with self._mutex:
            part = list(itertools.islice(self._announced.items(), _PART))
            for key, _ in part:
                self._announced.move_to_end(key)
        part.sort(key=lambda each: get_offload_group_idx(each[0]))
        try:
            if self._opened is not kinds and not self._open(kinds):
                return
            named = kinds.name([key for key, _ in part])
            places = self._client.lookup_blocks(named, peek=True)
        except PandoError:
            self._opened = None
            return
        with self._mutex:
            for (key, number), place in zip(part, places.tolist(), strict=True):
                if place == MISSING and self._announced.get(key) == number:
                    del self._announced[key]
                    self._removed[key] = None

    def _open(self, kinds: KindsInUse) -> bool:
        """In the session of this client. False where there are newer ones."""
        names = [(None, identity) for identity in kinds.identities]
        found = self._client.find_kinds(names)
        numbers = [kind.number if kind else None for kind in found]
        is_same = numbers == list(kinds.numbers.values())
        self._opened = kinds if is_same else None
        return is_same
