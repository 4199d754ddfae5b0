"""Loads, which copy locked blocks to the slots of a batch's requests, layer by layer.
The forward pass runs at the same time and waits for each layer."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pando_kv.sglang.linker.copies import Copies
from pando_kv.sglang.linker.pages import Addresses, PoolPages
from pando_kv.sglang.linker.store import Binding, Store

_log = logging.getLogger("pando_kv.sglang")


@dataclass(frozen=True)
class Part:
    """The pages of one pool, on the device and in the store."""

    pages: PoolPages
    indices: Any
    """The indices of the pages' tokens, on the device."""
    blocks: Addresses


@dataclass(frozen=True)
class Load:
    """The blocks of one request that are to be copied to the device. These blocks are
    locked, so the load needs nothing more from pandod and cannot fail. The binding
    keeps the memory mapped until the load is done."""

    parts: Sequence[Part]
    binding: Binding
    locks: Sequence[int]


class Loader:
    """A thread that copies batches of loads, in order. Owned by PandoLinker; the
    scheduler's thread alone queues batches."""

    def __init__(self, store: Store, counter: Any, copies: Copies, layers: int) -> None:
        """Starts the thread. `counter` is SGLang's LayerWiseLoadCounter, which learns
        of each copied layer."""
        self._store = store
        self._counter = counter
        self._copies = copies
        self._layers = layers
        self._batches: queue.Queue[tuple[int, Sequence[Load], Any] | None] = (
            queue.Queue()
        )
        self._thread = threading.Thread(
            target=self._run, name="pando-linker-loads", daemon=True
        )
        self._thread.start()

    def start(self, index: int, loads: Sequence[Load], ready: Any) -> None:
        """Queues a batch. `index` names the batch in the counter. The batch's slots may
        be written once the device has passed the event `ready`."""
        self._batches.put((index, loads, ready))

    def wait(self) -> None:
        """Waits until all queued batches are done."""
        self._batches.join()

    def close(self) -> None:
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            index, loads, ready = batch
            try:
                ready.synchronize()
                self._copy(index, loads)
            except BaseException as error:
                # The forward pass waits for the layers without a limit, so it must
                # learn of every error.
                self._counter.fail(index, error)
                _log.exception("a load failed")
            for load in loads:
                self._store.release(load.binding, load.locks)
            del batch, loads
            self._batches.task_done()

    def _copy(self, index: int, loads: Sequence[Load]) -> None:
        copied = [
            (part.pages, part.pages.rows(part.indices), part.blocks)
            for load in loads
            for part in load.parts
        ]
        for layer in range(self._layers):
            for pages, rows, blocks in copied:
                fragments = pages.fragments(rows, blocks, layer)
                if fragments is not None:
                    self._copies.to_device(fragments)
            self._counter.complete(index, layer)
