"""The scheduler's side: which blocks are found, held, loaded and stored.

vLLM asks for one key after the other, again in each step in which a request waits, and
knows no failure once it has been told of a hit. So all keys of a request are locked in
one call when the first of them is asked for, and the answers are kept: a block that was
found stays until it is loaded, or is given back when vLLM does not want it. All that
fails, fails as a miss.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

import numpy as np
from vllm.v1.kv_offload.base import (
    LoadStoreSpec,
    Locality,
    LookupResult,
    Medium,
    OffloadingEvent,
    OffloadingManager,
    OffloadKey,
    PrepareStoreOutput,
    ReqContext,
    RequestOffloadingContext,
    ScheduleEndContext,
    get_offload_group_idx,
)
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv import Client
from pando_kv.blocks import FULL, MISSING, NOT_LOOKED_AT, PENDING
from pando_kv.vllm.offloading.announced import AnnouncedBlocks
from pando_kv.vllm.offloading.block_places import BlockPlaces
from pando_kv.vllm.offloading.kinds_in_use import EngineKinds, KindsInUse
from pando_kv.vllm.offloading.request_blocks import (
    RequestBlocks,
    blocks_of,
    keys_before,
    keys_of,
)
from pando_kv.vllm.offloading.step_access import StepAccess

# Seconds in which a request waits for blocks that others are writing.
_PENDING_SECONDS = 1.0
# Seconds before those are asked for again.
_PENDING_PAUSE = 0.005
# Seconds in which blocks are held, and answers kept, for a request that waits for
# something else.
_HOLD_SECONDS = 1.0
# Seconds without an answer in which a store is tried again in each step.
_STORE_PATIENCE = 0.2
# The most keys that pandod takes in one call.
_MOST_KEYS = 16384


class SharedBlocks(OffloadingManager):  # type: ignore[misc]
    """vLLM's scheduler owns it; its thread alone calls it."""

    def __init__(
        self,
        client: Client,
        is_changed: threading.Event,
        config: OffloadingConfig,
        announcer: Client | None = None,
    ) -> None:
        """`client` has `away_after`; `is_changed` is set when its session is lost.
        `announcer` is there if vLLM publishes events."""
        self._access = StepAccess(client)
        self._config = config
        self._names = itertools.count(1 + secrets.randbits(62))
        self._step = 0
        self._resets = 0
        self._silent_since: float | None = None
        # Those that hold locks, load or store.
        self._holders: dict[RequestBlocks, None] = {}
        # Locks and reservations that are given back once the workers have done a flush,
        # and its step.
        self._after_flush: list[tuple[int, list[int], set[int]]] = []
        self._kinds = EngineKinds(client, is_changed, config)
        self._announced: AnnouncedBlocks | None = None
        if announcer is not None:
            self._announced = AnnouncedBlocks(announcer, self._kinds)

    # Loads.

    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        blocks = blocks_of(req_context)
        if blocks.step != self._step:
            self._bring_up_to_date(blocks, req_context)
        if key not in blocks.answers:
            # Not known at the first lookup: a key of a block that is not full.
            self._acquire(blocks, [key])
        answer = blocks.answers.get(key)
        if answer is None:
            return LookupResult.RETRY
        if answer < NOT_LOOKED_AT:
            if self._announced is not None:
                self._announced.add([key])
            return LookupResult.HIT
        if answer == PENDING:
            return LookupResult.HIT_PENDING
        return LookupResult.MISS

    def get_load_source(self, key: OffloadKey, req_context: ReqContext) -> Any:
        """vLLM asks since 0.32."""
        from vllm.v1.metrics.cache_hit_source import CacheHitSource

        return CacheHitSource.HOST

    def prepare_load(
        self, keys: Collection[OffloadKey], req_context: ReqContext
    ) -> LoadStoreSpec:
        blocks = blocks_of(req_context)
        places = [blocks.answers[key] for key in keys]
        assert all(place < NOT_LOOKED_AT for place in places), "loads what it has not"
        blocks.is_loading = True
        return BlockPlaces(places, blocks.epoch, blocks.session_id)

    def complete_load(
        self, keys: Collection[OffloadKey], req_context: ReqContext
    ) -> None:
        self._forget_answers([blocks_of(req_context)])

    def _bring_up_to_date(self, blocks: RequestBlocks, context: ReqContext) -> None:
        """Once in a step: within one, answers do not change."""
        blocks.step = self._step
        now, kinds = time.monotonic(), self._kinds.now
        is_over = now - blocks.held_since > _HOLD_SECONDS
        if kinds is None or blocks.generation != kinds.generation or is_over:
            self._forget_answers([blocks])
            blocks.held_since = now
        wanted = [key for key in keys_of(context) if key not in blocks.answers]
        if not context.load_tier_filter.allows(Medium.CPU, Locality.LOCAL):
            wanted = []
        if blocks.pending and now - blocks.asked_at > _PENDING_PAUSE:
            wanted += blocks.pending
        for first in range(0, len(wanted), _MOST_KEYS):
            self._acquire(blocks, wanted[first : first + _MOST_KEYS])
        if not blocks.pending:
            return
        blocks.pending_since = blocks.pending_since or now
        if now - blocks.pending_since > _PENDING_SECONDS:
            blocks.answers.update(dict.fromkeys(blocks.pending, MISSING))
            blocks.pending.clear()

    def _acquire(self, blocks: RequestBlocks, keys: list[OffloadKey]) -> None:
        """Locks those that are there; notes the answer to each, or none if this step
        may ask no more. Where pandod does not answer they are missing. What its tier
        has is pending until it is loaded."""
        kinds = self._kinds.now
        # Blocks that are loaded together are in one memory.
        is_another = kinds and blocks.locks and blocks.generation != kinds.generation
        if kinds is None or is_another:
            blocks.answers.update(dict.fromkeys(keys, MISSING))
            return
        if not self._access.has_time:
            return
        client, lock, named = self._access.client, next(self._names), kinds.name(keys)
        blocks.asked_at = time.monotonic()
        places = self._access.ask(lambda: client.acquire_blocks(lock, named, load=True))
        if places is not None and not self._is_answer_of(kinds):
            self._release([lock])
            places = None
        if places is None:
            blocks.answers.update(dict.fromkeys(keys, MISSING))
            return
        blocks.generation, blocks.epoch = kinds.generation, kinds.epoch
        blocks.session_id = kinds.session_id
        blocks.answers.update(zip(keys, places.tolist(), strict=True))
        blocks.locks.append(lock)
        blocks.pending = [
            key for key, place in blocks.answers.items() if place == PENDING
        ]
        self._holders[blocks] = None

    def _forget_answers(self, of: Iterable[RequestBlocks]) -> None:
        locks: list[int] = []
        for blocks in of:
            locks += blocks.forget_answers()
            if not blocks.storing:
                self._holders.pop(blocks, None)
        self._release(locks)

    def _release(self, locks: list[int]) -> None:
        if locks:
            self._access.give_back(lambda: self._access.client.release_blocks(locks))

    # Stores.

    def prepare_store(
        self, keys: Collection[OffloadKey], req_context: ReqContext
    ) -> PrepareStoreOutput | None:
        """None, after which vLLM asks again, for a moment without an answer: it goes on
        after an empty one, and what follows a block that was left out is not found."""
        blocks, wanted = blocks_of(req_context), list(keys)[:_MOST_KEYS]
        # After a reset vLLM offers all blocks of running requests anew: what older
        # weights may have made, by ids that blocks of a window had before they went.
        if blocks.stores_nothing or blocks.resets != self._resets:
            return _store(BlockPlaces([], 0, 0), [])
        kinds, places = self._kinds.now, None
        reservation = next(self._names)
        if kinds is not None and self._access.has_time:
            client = self._access.client
            named = kinds.name(wanted, keys_before(req_context, wanted))
            places = self._access.ask(lambda: client.reserve_blocks(reservation, named))
            if places is not None and not self._is_answer_of(kinds):
                self._access.give_back(lambda: client.discard_blocks(reservation))
                places = None
        if kinds is None or places is None:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since < _STORE_PATIENCE:
                return None
            blocks.stores_nothing = True
            return _store(BlockPlaces([], 0, 0), [])
        chosen, given_up = _choose(wanted, places)
        if given_up:
            self._access.give_back(lambda: client.discard_blocks(reservation, given_up))
        is_cut = len(wanted) < len(keys)
        blocks.stores_nothing = is_cut or bool((places == FULL).any())
        stored = [wanted[index] for index in chosen]
        for key in stored:
            blocks.storing[key] = reservation
        if self._announced is not None:
            self._announced.expect(stored)
        if stored:
            self._holders[blocks] = None
        spec = BlockPlaces(places[chosen].tolist(), kinds.epoch, kinds.session_id)
        return _store(spec, stored)

    def complete_store(
        self,
        keys: Collection[OffloadKey],
        req_context: ReqContext,
        success: bool = True,
    ) -> None:
        blocks, client = blocks_of(req_context), self._access.client
        finish = client.publish_blocks if success else client.discard_blocks
        for reservation in {blocks.storing.pop(key) for key in keys}:
            self._access.give_back(partial(finish, reservation))
        if success and self._announced is not None:
            self._announced.add(keys)
        if not blocks.locks and not blocks.storing:
            self._holders.pop(blocks, None)

    # Requests and steps.

    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        blocks_of(req_context).resets = self._resets
        return RequestOffloadingContext()

    def on_request_finished(self, req_context: ReqContext) -> None:
        blocks = blocks_of(req_context)
        if not blocks.is_loading:
            self._forget_answers([blocks])

    def on_schedule_end(self, context: ScheduleEndContext) -> None:
        """Gives back what is not loaded, of requests that were not asked for, run by
        now, or have waited for long."""
        now, begun = time.monotonic(), set(context.new_req_ids)
        self._forget_answers(
            [
                blocks
                for blocks in self._holders
                if not blocks.is_loading
                and (
                    blocks.step != self._step
                    or blocks.request_id in begun
                    or now - blocks.held_since > _HOLD_SECONDS
                )
            ]
        )
        self._finish_flushes()
        if not self._holders and not self._after_flush:
            self._kinds.forget_lost_sessions()
        self._step += 1
        self._access.begin_step()

    def has_pending_work(self) -> bool:
        """While it has, vLLM goes on with steps; after some of them a flush is over."""
        return bool(self._after_flush) or self._access.is_behind

    def reset_cache(self) -> None:
        """This engine finds nothing of before; it takes nothing from others. vLLM says
        no more of the transfers under way, but has them flushed with its next step."""
        locks: list[int] = []
        reservations: set[int] = set()
        for blocks in list(self._holders):
            if blocks.is_loading:
                locks += blocks.forget_answers()
            else:
                self._forget_answers([blocks])
            reservations |= blocks.forget_stores()
        self._holders.clear()
        # Each rank of a pipeline may have a step under way, and one more is scheduled
        # before the last one is over.
        steps = self._config.parallel.pp_size + 1
        self._after_flush.append((self._step + steps, locks, reservations))
        self._resets += 1
        self._kinds.reset()
        if self._announced is not None:
            self._announced.forget()

    def take_events(self) -> Iterable[OffloadingEvent]:
        return self._announced.take_events() if self._announced is not None else ()

    def shutdown(self) -> None:
        if self._announced is not None:
            self._announced.close()
        self._kinds.close()
        self._access.client.close()

    def _finish_flushes(self) -> None:
        while self._after_flush and self._after_flush[0][0] <= self._step:
            _, locks, reservations = self._after_flush.pop(0)
            self._release(locks)
            for reservation in reservations:
                discard = self._access.client.discard_blocks
                self._access.give_back(partial(discard, reservation))

    def _is_answer_of(self, kinds: KindsInUse) -> bool:
        """Whether what was just answered is so in the session that has these kinds: in
        another one their numbers are those of other kinds."""
        self._silent_since = None
        return self._access.client.generation == kinds.generation


def _store(spec: BlockPlaces, keys: list[OffloadKey]) -> PrepareStoreOutput:
    return PrepareStoreOutput(keys_to_store=keys, store_spec=spec, evicted_keys=[])


def _choose(keys: list[OffloadKey], places: np.ndarray) -> tuple[list[int], list[int]]:
    """Indices of those that are stored, and of those that have room, but follow one of
    their group that has none."""
    chosen: list[int] = []
    given_up: list[int] = []
    full = set()
    for index, place in enumerate(places.tolist()):
        group = get_offload_group_idx(keys[index])
        if place == FULL:
            full.add(group)
        elif place < NOT_LOOKED_AT:
            (given_up if group in full else chosen).append(index)
    return chosen, given_up
