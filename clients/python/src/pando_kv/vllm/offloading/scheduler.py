"""The part of the offloading spec in vLLM's scheduler: it finds, locks and reserves
blocks.

vLLM looks up one key after the other, again in each step in which a request waits, and
does not expect a load to fail after a hit. The first look-up of a request therefore
locks the blocks of all its keys in one call, and the answers are kept. A locked block
stays until it is loaded, or is released when vLLM does not want it. A call to pandod
that fails counts as a miss.
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

# Seconds that a request waits for pending blocks, which another session is writing or a
# tier is loading.
_PENDING_SECONDS = 1.0
# Seconds before pending blocks are looked up again.
_PENDING_PAUSE = 0.005
# Seconds that blocks stay locked, and answers are kept, for a request that waits for
# something else.
_HOLD_SECONDS = 1.0
# Seconds without an answer for which a store is tried again in each step.
_STORE_PATIENCE = 0.2
# The most keys that pandod takes in one call.
_MOST_KEYS = 16384


class SharedBlocks(OffloadingManager):  # type: ignore[misc]
    """The manager that vLLM's scheduler asks about blocks. The scheduler owns it, and
    only the scheduler's thread calls it."""

    def __init__(
        self,
        client: Client,
        is_changed: threading.Event,
        config: OffloadingConfig,
        announcer: Client | None = None,
    ) -> None:
        """Takes a client that was made with `away_after`, and the event that is set
        when its session is lost. `announcer` is a second client, given only if vLLM
        publishes KV events. Raises RuntimeError if there are no kinds within a minute.
        """
        self._access = StepAccess(client)
        self._config = config
        self._names = itertools.count(1 + secrets.randbits(62))
        self._step = 0
        self._resets = 0
        self._silent_since: float | None = None
        # The requests that hold locks, load or store; an ordered set.
        self._holders: dict[RequestBlocks, None] = {}
        # A step, and the locks and reservations that are given back in that step. By
        # then the workers have finished the transfers that a reset flushes.
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
            # The key was not known at the first look-up, as its block is not full.
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
        """Returns the source of hits, for vLLM's metrics. vLLM calls it since 0.32."""
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
        """Locks what is new of the request's keys, and drops answers that are too old.
        It runs once in a step for each request, so answers do not change within a step.
        """
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
        """Locks the blocks that are ready, and notes the answer for each key. If pandod
        does not answer, the keys are noted as missing; if this step has no time left,
        nothing is noted. A block in a tier is pending until it is loaded."""
        kinds = self._kinds.now
        # All blocks that a request loads must lie in the memory of one session.
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
        """Reserves places for the blocks that pandod does not have. Without an answer,
        or without time left in this step, returns None, after which vLLM offers the
        blocks again. Once there has been no answer for _STORE_PATIENCE seconds, returns
        an empty output, after which vLLM goes on with later blocks; no look-up would
        find those behind the missing ones, so the request stores nothing more."""
        blocks, wanted = blocks_of(req_context), list(keys)[:_MOST_KEYS]
        # After a reset vLLM offers all blocks of running requests again. Older weights
        # may have made their content, and the blocks that a sliding window has passed
        # are offered by ids that may belong to other requests now.
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
        """Ends vLLM's scheduling of a step. Releases the locks of each request that is
        not loading, if vLLM did not look it up in this step, if it runs now, or if it
        has held the locks for more than _HOLD_SECONDS."""
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
        """Returns whether vLLM must go on with steps, even without requests, because
        locks, reservations or publications wait for a later step."""
        return bool(self._after_flush) or self._access.is_behind

    def reset_cache(self) -> None:
        """Makes this engine find nothing that was stored before. Other engines lose
        nothing. vLLM does not report the transfers that are under way as complete, but
        lets the workers finish them in its next step."""
        locks: list[int] = []
        reservations: set[int] = set()
        for blocks in list(self._holders):
            if blocks.is_loading:
                locks += blocks.forget_answers()
            else:
                self._forget_answers([blocks])
            reservations |= blocks.forget_stores()
        self._holders.clear()
        # Each stage of a pipeline may have a step under way, and vLLM schedules one
        # more step before the last of these is over.
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
        """Returns whether the last answer came in the session that opened these kinds.
        In another session their numbers may name other kinds."""
        self._silent_since = None
        return self._access.client.generation == kinds.generation


def _store(spec: BlockPlaces, keys: list[OffloadKey]) -> PrepareStoreOutput:
    return PrepareStoreOutput(keys_to_store=keys, store_spec=spec, evicted_keys=[])


def _choose(keys: list[OffloadKey], places: np.ndarray) -> tuple[list[int], list[int]]:
    """Returns the indices of the keys that are stored, and of the keys that got a place
    but are not stored because an earlier key of their group got none."""
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
