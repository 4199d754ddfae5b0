"""What the store has of the prompts that wait.

SGLang asks at every match: a queue that is ranked by prefixes asks of each request in
each step. So what was answered is remembered, and what has become old of it is asked
again in one call, along with what is new.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pando_kv._wire import Uint32Array
from pando_kv.blocks import BlockKeys, Shape, are_places
from pando_kv.sglang.linker.budget import StepBudget
from pando_kv.sglang.linker.store import MOST_KEYS, Binding, Store

# Seconds for which an answer holds. Blocks that go meanwhile cost a load that is
# refused; blocks that come, a hit.
_HOLDS = 0.1
# Seconds after which what is not asked any more is forgotten.
_KEPT = 2.0


@dataclass(frozen=True)
class Wanted:
    """The pages behind what is on the device, in one kind of the store."""

    kind: int
    """The position of the kind in the binding."""
    trailing: int = 0
    """So many pages must be there before a boundary; 0: all from the first."""


@dataclass
class _Known:
    identity: tuple[str, int, tuple[Wanted, ...]]
    keys: bytes
    binding: int
    answer: list[int]
    answered: float
    asked: float


class Lookups:
    """Owned by the linker; the scheduler's thread alone uses it."""

    def __init__(self, store: Store, budget: StepBudget) -> None:
        self._store = store
        self._budget = budget
        self._known: dict[str, _Known] = {}

    def begin_step(self) -> None:
        oldest = time.monotonic() - _KEPT
        gone = [rid for rid, each in self._known.items() if each.asked < oldest]
        for rid in gone:
            del self._known[rid]

    def restorable(
        self, rid: str, keys: Sequence[str], wanted: Sequence[Wanted]
    ) -> list[int]:
        """Each number of pages, from the first, at which all kinds have what they
        need."""
        binding = self._store.binding
        if binding is None:
            return []
        identity = (keys[0], len(keys), tuple(wanted))
        now = time.monotonic()
        known = self._known.get(rid)
        if (
            known is None
            or known.identity != identity
            or known.binding != binding.number
        ):
            packed = bytes.fromhex("".join(keys))
            known = _Known(identity, packed, binding.number, [], 0.0, now)
        known.asked = now
        if known.answered + _HOLDS < now:
            self._ask(rid, known, binding, now)
        return known.answer

    def forget(self, rid: str) -> None:
        self._known.pop(rid, None)

    def clear(self) -> None:
        self._known.clear()

    def _ask(self, rid: str, known: _Known, binding: Binding, now: float) -> None:
        """This one, and of the others whose answers are old as many as fit into the
        call."""
        asked = {rid: known}
        room = MOST_KEYS - _size(known)
        for other_rid, other in self._known.items():
            is_old = other.answered + _HOLDS < now
            is_of_binding = other.binding == binding.number
            if other_rid != rid and is_old and is_of_binding and _size(other) <= room:
                asked[other_rid] = other
                room -= _size(other)
        questions = [_question(each, binding) for each in asked.values()]
        keys = [each for one in questions for each in one]
        places = self._budget.ask(lambda: self._store.lookup(keys))
        if places is None:
            # In the next step it is asked again.
            known.answer = []
            return
        self._known[rid] = known
        at = 0
        for each in asked.values():
            _, pages, wanted = each.identity
            end = at + _size(each)
            each.answer = boundaries(places[at:end].reshape(-1, pages), wanted)
            each.answered = now
            at = end


def _size(known: _Known) -> int:
    """How many keys are asked about."""
    return known.identity[1] * len(known.identity[2])


def _question(known: _Known, binding: Binding) -> list[BlockKeys]:
    return [
        BlockKeys(
            binding.kinds[each.kind].number,
            known.keys,
            shape=Shape.EACH if each.trailing else Shape.PREFIX,
        )
        for each in known.identity[2]
    ]


def boundaries(places: Uint32Array, wanted: Sequence[Wanted]) -> list[int]:
    """`places` has a row for each of `wanted`, and a column for each page."""
    pages = places.shape[1]
    is_there = are_places(places)
    usable = np.ones(pages, bool)
    for has, each in zip(is_there, wanted, strict=True):
        usable &= _run_lengths(has) >= np.minimum(
            np.arange(1, pages + 1), each.trailing or pages
        )
    return [int(page) for page in np.flatnonzero(usable) + 1]


def _run_lengths(has: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many pages in a row, up to each page, are there."""
    at = np.arange(1, len(has) + 1)
    return at - np.maximum.accumulate(np.where(has, 0, at))
