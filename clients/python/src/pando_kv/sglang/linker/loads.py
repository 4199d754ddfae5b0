"""Loads: from blocks that are locked to slots of the requests of a batch, layer by
layer, beside the forward that waits for each."""

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
    """Of their tokens, on the device."""
    blocks: Addresses


@dataclass(frozen=True)
class Load:
    """Has all that it needs: it asks pandod for nothing more, so that it cannot fail.
    The binding keeps the memory mapped until it is done."""

    parts: Sequence[Part]
    binding: Binding
    locks: Sequence[int]


class Loader:
    """One thread that copies. The linker's owner queues batches, in order."""

    def __init__(self, store: Store, counter: Any, copies: Copies, layers: int) -> None:
        """`counter` is a LayerWiseLoadCounter."""
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
        """The slots may be written once `ready` has passed on the device."""
        self._batches.put((index, loads, ready))

    def wait(self) -> None:
        """Until nothing is copied any more."""
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
                # A forward waits for the layers without a limit.
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
