"""Random operations on the managers of several engines that share blocks. Each runs
beside vLLM's own manager.

The worker writes a block's key into the block's place, and checks the key there when
the block is loaded.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from engines.vllm.offloading.manager_alone import (
    ManagerAlone,
    context_of,
    manager_alone,
    prompt_keys,
)
from eventually import eventually
from pando_kv import Client
from pando_kv.blocks import PLACE_BYTES
from pando_kv.operators import BlockFate
from vllm.v1.kv_offload.base import (
    LookupResult,
    OffloadKey,
    ReqContext,
    ScheduleEndContext,
    get_offload_block_hash,
    get_offload_group_idx,
)
from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager

SHARD_BYTES = (4 * PLACE_BYTES, 12 * PLACE_BYTES)
FAMILIES = 4
LONGEST = 60  # blocks in a prompt
MOST_REQUESTS = 6  # in an engine at once
OPERATIONS = {
    "arrive": 6,
    "look up": 8,
    "load": 6,
    "end a load": 5,
    "store": 8,
    "end a store": 7,
    "end a step": 8,
    "finish": 4,
    "reset": 0.02,
}


class Shared:
    """The state that engines which share their blocks have in common."""

    def __init__(self, chunks: int | None) -> None:
        """Takes the chunks that hold all blocks, or None if memory is short."""
        self.chunks = chunks
        self.own = None if chunks is None else CPUOffloadingManager(chunks)
        self.stored: set[OffloadKey] = set()


@dataclass(eq=False)
class Request:
    context: ReqContext
    groups: Sequence[Sequence[OffloadKey]]
    stored_to: int = 0
    """The number of blocks in each group that were offered."""
    answers: dict[OffloadKey, LookupResult] = field(default_factory=dict)
    """For each key, the right answer at the time of the look-up. It is forgotten when
    Pando forgets its answer."""
    is_asked: bool = False
    """Whether the request was looked up in this step."""
    has_begun: bool = False
    loads: list[OffloadKey] = field(default_factory=list)


@dataclass(frozen=True)
class Transfer:
    request: Request
    keys: list[OffloadKey]
    places: list[int]


class Engine:
    def __init__(self, address: str, name: str, shared: Shared, choose: random.Random):
        self.alone: ManagerAlone = manager_alone(
            address, name, SHARD_BYTES, away_after=60.0
        )
        self.manager = self.alone.manager
        self.memory = self.alone.worker.attach_memory().bytes
        self.shared = shared
        self.choose = choose
        self.requests: list[Request] = []
        self.loads: list[Transfer] = []
        self.stores: list[Transfer] = []
        self.hits = 0
        self._names = 0

    def do(self, operation: str) -> None:
        getattr(self, "_" + operation.replace(" ", "_"))()

    def drain(self) -> None:
        """Ends all transfers and requests."""
        while self.loads:
            self._end_a_load()
        while self.stores:
            self._end_a_store()
        while self.requests:
            self._finish()
        self._end_a_step()

    def _arrive(self) -> None:
        if len(self.requests) == MOST_REQUESTS:
            return
        self._names += 1
        family = f"{self.choose.randrange(FAMILIES)}"
        begin = self.choose.randrange(40)
        tail = f"{family} {begin} {self.choose.randrange(3)}"
        length = self.choose.randrange(begin, LONGEST) - begin
        groups = [
            [*prompt_keys(family, begin, group), *prompt_keys(tail, length, group)]
            for group in range(len(SHARD_BYTES))
        ]
        request = Request(context_of(f"{self._names}", groups), groups)
        for manager in self._managers():
            manager.on_new_request(request.context)
        self.requests.append(request)

    def _look_up(self) -> None:
        """Looks up the prefix of one group, and the last blocks of the other group."""
        request = self._one([r for r in self.requests if not r.has_begun])
        if request is None:
            return
        prefix, others = request.groups
        for key in prefix:
            if self._ask(request, key) is not LookupResult.HIT:
                break
        for key in others[: -self.choose.randrange(1, 9) : -1]:
            self._ask(request, key)

    def _ask(self, request: Request, key: OffloadKey) -> LookupResult:
        is_first = not request.answers
        if not request.is_asked:
            request.is_asked = True
            self._note_what_is_true(request)
        answer = self.manager.lookup(key, request.context)
        if self.shared.own is not None:
            assert answer is request.answers[key], f"{key.hex()}: {answer}"
        elif is_first:
            self._check_what_is_missing(request)
        request.answers[key] = answer
        self.hits += answer is LookupResult.HIT
        return answer

    def _note_what_is_true(self, request: Request) -> None:
        if self.shared.own is None:
            return
        for key in (key for keys in request.groups for key in keys):
            if request.answers.get(key) in (None, LookupResult.HIT_PENDING):
                request.answers[key] = self.shared.own.lookup(key, request.context)

    def _check_what_is_missing(self, request: Request) -> None:
        """Checks that a missing block was evicted if it was stored before.

        The caller has just looked up all keys of the request."""
        for key in (key for keys in request.groups for key in keys):
            is_missing = self.manager.lookup(key, request.context) is LookupResult.MISS
            if is_missing and key in self.shared.stored:
                assert self._is_evicted(key), f"{key.hex()} was stored"
                return

    def _load(self) -> None:
        """Begins to load what a request has found in this step."""
        request = self._one(
            [r for r in self.requests if r.is_asked and not r.has_begun]
        )
        if request is None:
            return
        request.has_begun = True
        asked = self.manager.lookup
        found = [
            key
            for key in request.answers
            if asked(key, request.context) is LookupResult.HIT
        ]
        if not found or self.choose.random() < 0.2:
            return
        spec, *own = [
            manager.prepare_load(found, request.context) for manager in self._managers()
        ]
        places = spec.block_ids.tolist()
        assert all(len(each.block_ids) == len(places) for each in own)
        request.loads = found
        load = Transfer(request, found, places)
        self._read(load)
        self.loads.append(load)

    def _end_a_load(self) -> None:
        load = self._take(self.loads)
        if load is None:
            return
        self._read(load)
        load.request.answers.clear()
        load.request.loads = []
        for manager in self._managers():
            manager.complete_load(load.keys, load.request.context)

    def _store(self) -> None:
        request = self._one([r for r in self.requests if r.has_begun and not r.loads])
        if request is None:
            return
        first, count = request.stored_to, self.choose.randrange(1, 20)
        wanted = [key for keys in request.groups for key in keys[first : first + count]]
        if not wanted:
            return
        request.stored_to += count
        output, *own = [
            manager.prepare_store(wanted, request.context)
            for manager in self._managers()
        ]
        assert output is not None
        keys, places = output.keys_to_store, output.store_spec.block_ids.tolist()
        assert len(places) == len(set(places)) == len(keys)
        assert output.evicted_keys == []
        for each in own:
            assert keys == each.keys_to_store and each.evicted_keys == []
        assert set(keys) <= set(wanted)
        if not keys:
            return
        self.shared.stored.difference_update(keys)
        store = Transfer(request, keys, places)
        self._write(store)
        self.stores.append(store)

    def _end_a_store(self) -> None:
        store = self._take(self.stores)
        if store is None:
            return
        self._read(store)
        is_done = self.choose.random() < 0.9
        for manager in self._managers():
            manager.complete_store(store.keys, store.request.context, is_done)
        if is_done:
            self.shared.stored.update(store.keys)

    def _end_a_step(self) -> None:
        begun = [r for r in self.requests if r.has_begun]
        names = [r.context.req_id for r in begun]
        for manager in self._managers():
            manager.on_schedule_end(ScheduleEndContext(names, []))
        for request in self.requests:
            if not request.loads and (request.has_begun or not request.is_asked):
                request.answers.clear()
            request.is_asked = False

    def _finish(self) -> None:
        request = self._one(self.requests)
        if request is None:
            return
        self.requests.remove(request)
        for manager in self._managers():
            manager.on_request_finished(request.context)

    def _reset(self) -> None:
        """Flushes all transfers; afterwards the engine shares no blocks with others."""
        while self.requests:
            self._finish()
        if self.shared.own is not None:
            # For the other engines, the transfers end.
            for load in self.loads:
                self.shared.own.complete_load(load.keys, load.request.context)
            for store in self.stores:
                self.shared.own.complete_store(store.keys, store.request.context, False)
        self.loads.clear()
        self.stores.clear()
        self.manager.reset_cache()
        self.shared = Shared(self.shared.chunks)
        eventually(lambda: self.manager._kinds.now)
        for _ in range(3):
            self._end_a_step()

    def _managers(self) -> list[Any]:
        return (
            [self.manager]
            if self.shared.own is None
            else [self.manager, self.shared.own]
        )

    def _one(self, of: list[Request]) -> Request | None:
        return self.choose.choice(of) if of else None

    def _take(self, of: list[Transfer]) -> Transfer | None:
        return of.pop(self.choose.randrange(len(of))) if of else None

    def _is_evicted(self, key: OffloadKey) -> bool:
        kind = self.manager._kinds.now.numbers[get_offload_group_idx(key)]
        explained = self.alone.worker.explain_block(kind, get_offload_block_hash(key))
        return explained.fate is BlockFate.EVICTED

    def _write(self, transfer: Transfer) -> None:
        for key, place in zip(transfer.keys, transfer.places, strict=True):
            for part in self._ends(key, place):
                part[:] = np.frombuffer(key, np.uint8)

    def _read(self, transfer: Transfer) -> None:
        for key, place in zip(transfer.keys, transfer.places, strict=True):
            for part in self._ends(key, place):
                assert part.tobytes() == key, f"{place} has another block's bytes"

    def _ends(self, key: OffloadKey, place: int) -> list[np.ndarray]:
        """Returns the first and the last bytes of a block, as many as the key has."""
        first = place * PLACE_BYTES
        end = first + SHARD_BYTES[get_offload_group_idx(key)]
        return [
            self.memory[first : first + len(key)],
            self.memory[end - len(key) : end],
        ]


def run_operations(engines: Sequence[Engine], choose: random.Random, count: int) -> int:
    """Runs `count` random operations, and returns how many blocks were found."""
    names, weights = list(OPERATIONS), list(OPERATIONS.values())
    for operation in choose.choices(names, weights, k=count):
        choose.choice(engines).do(operation)
    for engine in engines:
        engine.drain()
    return sum(engine.hits for engine in engines)


def check_what_is_stored(engines: Iterable[Engine], operator: Client) -> None:
    """Checks that each block whose store was completed is found, or was evicted."""
    for shared, engine in {engine.shared: engine for engine in engines}.items():
        for key in sorted(shared.stored):
            kind = engine.manager._kinds.now.numbers[get_offload_group_idx(key)]
            explained = operator.explain_block(kind, get_offload_block_hash(key))
            is_ready = explained.fate is BlockFate.READY
            assert is_ready or (
                shared.own is None and explained.fate is BlockFate.EVICTED
            )
