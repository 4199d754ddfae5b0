"""Lookups, which find the pages of waiting prompts in the store.

SGLang looks up at every match. A queue that is ranked by prefixes therefore looks up
each request in each step. Answers are remembered for a short time. A call for one
request, new or with an old answer, also asks again about other old answers.
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

# Seconds for which an answer is used. If blocks disappear meanwhile, a load is refused;
# if blocks appear, a hit is missed.
_HOLDS = 0.1
# Seconds after which a request that SGLang no longer looks up is forgotten.
_KEPT = 2.0


@dataclass(frozen=True)
class Wanted:
    """The pages of one kind that a lookup asks for, after the prefix that is on the
    device."""

    kind: int
    """The position of the kind in the binding."""
    trailing: int = 0
    """The number of pages that must be stored before a boundary; 0 if all pages from
    the first one on must be."""


@dataclass
class _Known:
    """The remembered lookup of one request."""

    identity: tuple[str, int, tuple[Wanted, ...]]
    keys: bytes
    binding: int
    answer: list[int]
    answered: float
    asked: float


class Lookups:
    """The remembered lookups of all waiting requests. Owned by PandoLinker; the
    scheduler's thread alone uses it."""

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
        """Returns each number of pages, counted from the first of `keys`, up to which
        the request can be restored: all kinds have the pages that they need there."""
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
        """Asks about this request, and about as many others with old answers as fit
        into the same call."""
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
            # The next lookup of this request asks again.
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
    """Returns the number of keys in a question about the request."""
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
    """Returns each number of pages at which all kinds have the pages that they need.
    `places` has a row for each of `wanted`, and a column for each page."""
    pages = places.shape[1]
    is_there = are_places(places)
    usable = np.ones(pages, bool)
    for has, each in zip(is_there, wanted, strict=True):
        usable &= _run_lengths(has) >= np.minimum(
            np.arange(1, pages + 1), each.trailing or pages
        )
    return [int(page) for page in np.flatnonzero(usable) + 1]


def _run_lengths(has: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Returns, for each page, the length of the unbroken run of stored pages that ends
    with it."""
    at = np.arange(1, len(has) + 1)
    return at - np.maximum.accumulate(np.where(has, 0, at))
