"""The blocks that vLLM reports to routers in its KV events.

vLLM reports the blocks that this engine has stored or found. pandod does not tell
engines which blocks it evicts, so a thread looks up the reported blocks again, a part
at a time, and reports the missing ones as removed.
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

# The keys that one call looks up, and the seconds between two calls.
_PART = 1024
_PAUSE = 0.02


class AnnouncedBlocks:
    """The blocks that are reported as stored, and the reports that vLLM has not taken
    yet. SharedBlocks owns it, and vLLM's scheduler thread calls it; a thread of its own
    looks for removed blocks.

    Routers count reports, so a block is reported as stored once, and then as removed
    once. vLLM forgets a block's tokens when the block is reported as removed, so a
    block that is being stored again is not reported as removed.
    """

    def __init__(self, client: Client, kinds: EngineKinds) -> None:
        """Takes ownership of `client`. The scheduler has another client, so a late
        answer to this one does not make pandod count as away for the scheduler."""
        self._client = client
        self._kinds = kinds
        self._opened: KindsInUse | None = None
        self._mutex = threading.Lock()
        # The keys in the order in which they will be looked up. A key gets a new number
        # whenever the engine stores or finds its block; an answer to a look-up that
        # began under an older number is ignored.
        self._announced: OrderedDict[OffloadKey, int] = OrderedDict()
        self._numbers = itertools.count()
        # The reports since vLLM last took the events.
        self._stored: dict[OffloadKey, None] = {}
        self._removed: dict[OffloadKey, None] = {}
        self._is_taken = threading.Event()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="pando-announced", daemon=True
        )
        self._thread.start()

    def add(self, keys: Iterable[OffloadKey]) -> None:
        """Reports blocks as stored that this engine has stored or found, unless they
        are reported already."""
        with self._mutex:
            for key in keys:
                if not self._is_reported(key):
                    self._stored[key] = None
                self._announced[key] = next(self._numbers)

    def expect(self, keys: Iterable[OffloadKey]) -> None:
        """Keeps blocks that this engine begins to store again from being reported as
        removed."""
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
        """Drops all blocks and reports after a reset of the cache. vLLM itself tells
        routers that the cache is cleared."""
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
        """Returns whether the block counts as stored for routers. Withdraws the report
        of its removal if vLLM has not taken that report yet."""
        if key in self._removed:
            del self._removed[key]
            return True
        return key in self._announced

    def _run(self) -> None:
        """Looks up all announced blocks once after each time that vLLM takes the
        events, which it does in its steps."""
        while not self._is_closed.is_set():
            self._is_taken.wait()
            self._is_taken.clear()
            for _ in range(0, len(self._announced), _PART):
                self._look_again()
                if self._is_closed.wait(_PAUSE):
                    return

    def _look_again(self) -> None:
        """Looks up the next part of the announced blocks and reports the missing ones
        as removed. Reports nothing while there are no kinds or pandod does not answer.
        """
        kinds = self._kinds.now
        if kinds is None:
            return
        with self._mutex:
            part = list(itertools.islice(self._announced.items(), _PART))
            for key, _ in part:
                self._announced.move_to_end(key)
        if not part:
            return
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
        """Opens the kinds in the session of this object's client. Returns whether they
        have the same numbers there; False if there are newer generations of them."""
        names = [(None, identity) for identity in kinds.identities]
        found = self._client.find_kinds(names)
        numbers = [kind.number if kind else None for kind in found]
        is_same = numbers == list(kinds.numbers.values())
        self._opened = kinds if is_same else None
        return is_same
