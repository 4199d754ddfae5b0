"""Offloads, which store the pages of the tree's nodes that the store does not have.

SGLang offers a node at each insert along that node. If SGLang were told that a node is
stored, it would never offer that node again, so it is never told. This module remembers
the stored nodes instead. An offer of a stored node costs one dict lookup; it also shows
that the node is in use, so the node's blocks are touched. Nodes that the store has lost
are stored again at the next offer, as are all nodes after a restart of pandod.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np

from pando_kv._wire import Uint32Array
from pando_kv.blocks import READY, BlockKeys, are_places
from pando_kv.sglang.linker.copies import Copies
from pando_kv.sglang.linker.pages import PoolPages
from pando_kv.sglang.linker.store import (
    KEY_BYTES,
    Binding,
    Store,
    portions,
)

_log = logging.getLogger("pando_kv.sglang")

# The number of nodes that are remembered. At an offer of a forgotten node, pandod is
# asked again.
_MOST_STORED = 65_536
# Seconds between two calls that touch blocks.
_TOUCHES_EVERY = 0.5


@dataclass(frozen=True)
class Offered:
    """The pages of a node in one pool."""

    kind: int
    """The position of the kind in the binding."""
    pages: PoolPages
    indices: Any
    """The indices of the pages' tokens, on the device."""
    keys: bytes
    before: bytes
    """The key of the page before the first one; empty if there is none."""

    @property
    def size(self) -> int:
        """The number of pages."""
        return len(self.keys) // KEY_BYTES

    def part(self, first: int, end: int) -> Offered:
        """Returns an offer of the pages from `first` up to, but not including,
        `end`."""
        tokens = self.pages.page_tokens
        before = self.keys[(first - 1) * KEY_BYTES : first * KEY_BYTES]
        return replace(
            self,
            indices=self.indices[first * tokens : end * tokens],
            keys=self.keys[first * KEY_BYTES : end * KEY_BYTES],
            before=before if first else self.before,
        )


@dataclass(eq=False)
class Job:
    """The offload of one node. SGLang keeps the node's pages until the job is done and
    popped."""

    offered: Sequence[Offered] = ()
    ready: Sequence[Any] = ()
    """Events of the device. The pages are written once all have passed."""
    is_done: bool = False
    is_cancelled: bool = False


@dataclass(frozen=True)
class _Stored:
    """The binding and the kinds in which a node is stored."""

    binding: int
    kinds: frozenset[int]


class Offloader:
    """A thread that calls pandod and copies. Owned by PandoLinker. The scheduler's
    thread calls the public methods. Only reset() and close() wait, for work that is
    under way."""

    def __init__(self, store: Store, copies: Copies) -> None:
        self._store = store
        self._copies = copies
        self._jobs: deque[Job] = deque()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # The stored nodes, by the last key of each.
        self._stored: dict[bytes, _Stored] = {}
        self._touched: set[bytes] = set()
        # Guards _touched.
        self._mutex = threading.Lock()
        self._copying = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name="pando-linker-offloads", daemon=True
        )
        self._thread.start()

    def has(self, last: bytes, kinds: frozenset[int]) -> bool:
        """Returns whether the store has the node that ends with the key `last` in all
        of `kinds`. If so, the node's blocks are touched soon after."""
        stored, binding = self._stored.get(last), self._store.binding
        if (
            stored is None
            or binding is None
            or stored.binding != binding.number
            or not kinds <= stored.kinds
        ):
            return False
        with self._mutex:
            self._touched.add(last)
        return True

    def offer(self, job: Job) -> None:
        self._jobs.append(job)
        if not job.is_done:
            self._queue.put(job)

    def completed(self) -> int:
        """Returns the number of jobs that are done, from the oldest to the first one
        that is not."""
        return sum(1 for _ in takewhile(lambda job: job.is_done, self._jobs))

    def pop(self) -> None:
        self._jobs.popleft()

    def reset(self) -> None:
        """Cancels all jobs. Returns when no page is read any more."""
        for job in self._jobs:
            job.is_cancelled = True
        self._jobs.clear()
        with self._copying:
            pass

    def close(self) -> None:
        self.reset()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic() + _TOUCHES_EVERY
        while True:
            with contextlib.suppress(queue.Empty):
                job = self._queue.get(timeout=max(0.0, due - time.monotonic()))
                if job is None:
                    return
                self._carry_out(job)
            if time.monotonic() >= due:
                self._touch()
                due = time.monotonic() + _TOUCHES_EVERY

    def _carry_out(self, job: Job) -> None:
        try:
            for event in job.ready:
                event.synchronize()
            binding = self._store.binding
            if binding is not None and self._store_node(job, binding):
                self._remember(job, binding)
        except Exception:
            _log.exception("pages could not be stored")
        finally:
            job.is_done = True

    def _store_node(self, job: Job, binding: Binding) -> bool:
        """Stores the pages that the store lacks. Returns whether it has all of them
        now."""
        is_complete = True
        for portion in portions([each.size for each in job.offered]):
            parts = [job.offered[at].part(first, end) for at, first, end in portion]
            reserved = self._store.reserve(
                binding,
                [
                    BlockKeys(binding.kinds[each.kind].number, each.keys, each.before)
                    for each in parts
                ],
            )
            if reserved is None:
                return False
            name, places = reserved
            is_ours = are_places(places)
            is_complete &= bool((is_ours | (places == READY)).all())
            if not is_ours.any():
                continue
            if not self._copy(job, binding, parts, places):
                self._store.discard(name)
                return False
            is_complete &= self._store.publish(name)
        return is_complete

    def _copy(
        self,
        job: Job,
        binding: Binding,
        parts: Sequence[Offered],
        places: Uint32Array,
    ) -> bool:
        """Copies the pages that got a place. Returns False, without a copy, if the job
        was cancelled and its pages must not be read any more."""
        ends = np.cumsum([each.size for each in parts])
        with self._copying:
            if job.is_cancelled:
                return False
            for each, of_part in zip(parts, np.split(places, ends[:-1]), strict=True):
                is_ours = are_places(of_part)
                fragments = each.pages.fragments(
                    each.pages.rows(each.indices)[is_ours],
                    binding.addresses(of_part[is_ours]),
                )
                assert fragments is not None
                self._copies.to_blocks(fragments)
        return True

    def _remember(self, job: Job, binding: Binding) -> None:
        last = job.offered[0].keys[-KEY_BYTES:]
        kinds = frozenset(each.kind for each in job.offered)
        self._stored[last] = _Stored(binding.number, kinds)
        if len(self._stored) > _MOST_STORED:
            del self._stored[next(iter(self._stored))]

    def _touch(self) -> None:
        """Touches the last block of each node that was offered again, which keeps the
        blocks before it, too. Forgets the nodes that the store has lost, so that they
        are stored again at their next offer."""
        with self._mutex:
            touched, self._touched = self._touched, set()
        binding = self._store.binding
        if binding is None:
            return
        by_kind: dict[int, list[bytes]] = {}
        for last in touched:
            stored = self._stored.get(last)
            if stored is not None and stored.binding == binding.number:
                for kind in stored.kinds:
                    by_kind.setdefault(kind, []).append(last)
        if not by_kind:
            return
        places = self._store.lookup(
            [
                BlockKeys(binding.kinds[kind].number, b"".join(keys))
                for kind, keys in by_kind.items()
            ]
        )
        if places is None:
            return
        asked = [last for keys in by_kind.values() for last in keys]
        for last, is_there in zip(asked, are_places(places), strict=True):
            if not is_there:
                self._stored.pop(last, None)
