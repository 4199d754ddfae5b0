"""SGLang's prefix cache, which is Pando's index.

SGLang's "nodes" are HeldPrefix objects here, one for each match of a request.
`match_prefix` locks the prefix of a request and reserves pages for the rest of its
prompt in one call. `checkpoint` publishes the pages that the request has computed; the
last one also releases the lock, in the same call. The request's row keeps its own pages
even if the cache has others for the same tokens, so a late publication changes nothing
that a running step reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from sglang.srt.mem_cache.base_prefix_cache import (
    BasePrefixCache,
    DecLockRefResult,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    MatchPrefixParams,
    MatchResult,
)
from sglang.srt.runtime_context import get_schedule

from pando_kv import Namespace, PrefixQuery
from pando_kv._short_name import short_name
from pando_kv._tier_waits import Prompt
from pando_kv.sglang.attachment import session, wait
from pando_kv.sglang.calls import Calls
from pando_kv.sglang.device_fence import DeviceFence, NoFence, StreamFence
from pando_kv.sglang.held_prefix import HeldPrefix
from pando_kv.sglang.publisher import Publisher, as_tokens, whole_pages

# The separator between the extra_key of a request and the version of the weights.
_WEIGHTS = "\x1fweights="
# The number of requests, from the front of the queue, that may load from a tier. Pages
# loaded for later requests could be evicted before their turn.
_LOADED_AHEAD = 32


class PandoPrefixCache(BasePrefixCache):  # type: ignore[misc]
    """The prefix cache of one SGLang scheduler, which makes and owns it and whose
    thread alone calls it. Each tensor-parallel rank has one, and all take the same
    steps."""

    def __init__(self, context: Any) -> None:
        params = context.params
        self.req_to_token_pool = params.req_to_token_pool
        self.token_to_kv_pool_allocator = params.token_to_kv_pool_allocator
        self.page_size = params.page_size
        self._page_slots = np.arange(params.page_size)
        self.disable = False
        self.sliding_window_size = None
        self.weights = ""
        """The version of the weights; empty while they are those of the start."""
        self.calls = _calls(context)
        self.fence = _fence(context)
        self.root_node = HeldPrefix()
        self.retractable: list[Any] = []
        """The requests that will run again if the current step retracts them."""
        # The matches of the current pass over the queue, used or not.
        self._matches: list[HeldPrefix] = []
        # The matches of prompts that do not have all their pages yet.
        self._growing: list[HeldPrefix] = []
        self._scores: dict[str, int] | None = None
        self._is_refused = False
        self._publisher = Publisher(self)
        self.token_to_kv_pool_allocator.cache = self

    # Matching.

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        request = params.req
        if request is None:
            return _result(0, self.root_node)
        if self._scores is not None:
            return _result(self._scores.get(request.rid, 0), self.root_node)
        self._publisher.settle_ended()
        self.publish_along()
        key = params.key
        tokens = as_tokens(key.token_ids, whole_pages(len(key), self.page_size))
        namespace = self._namespace(key.extra_key, key.cache_salt)
        prompt_pages, first_pages = self._pages_at_first(request)
        spare = max(0, self.token_to_kv_pool_allocator.spare_pages())
        reserve = max(0, first_pages - spare) * self.page_size
        admission = self.calls.admit(tokens, namespace, reserve)
        self._is_refused = admission is None
        if admission is None:
            return _result(0, self.root_node)
        self.token_to_kv_pool_allocator.add(admission.reserved)
        held = HeldPrefix(
            weights=self.weights,
            lock_id=admission.lock_id,
            tokens=admission.tokens,
            page_ids=admission.page_ids,
            request=request,
            prompt_pages=prompt_pages,
            first_pages=first_pages,
        )
        self._matches.append(held)
        self._growing.append(held)
        return _result(held.tokens, held)

    def _pages_at_first(self, request: Any) -> tuple[int, int]:
        """Returns the number of pages for the prompt, and for the prompt with the first
        tokens after it, at most one page of them."""
        prompt = len(request.full_untruncated_fill_ids)
        left = request.sampling_params.max_new_tokens - len(request.output_ids)
        first = prompt + max(0, min(left, self.page_size))
        return -(-prompt // self.page_size), -(-first // self.page_size)

    def take_refusal(self) -> bool:
        """Returns whether the last match was refused, for example for lack of room, and
        forgets it."""
        is_refused, self._is_refused = self._is_refused, False
        return is_refused

    def drop_unused_matches(self) -> None:
        """Gives back the matches of the last pass whose requests were not admitted."""
        self._publisher.settle_ended()
        unused = [held for held in self._matches if held.references == 0]
        self._matches.clear()
        self._drop_matches(unused)

    def held_back(self, queue: Sequence[Any]) -> set[str]:
        """Returns the ids of the requests that must not be matched yet, because a tier
        loads a part of their prompts."""

        def prompt(request: Any) -> Prompt:
            tokens = as_tokens(request.origin_input_ids + request.output_ids)
            # At least one token must be computed.
            whole = whole_pages(len(tokens) - 1, self.page_size)
            namespace = self._namespace(request.extra_key, request.cache_salt)
            return tokens[:whole], namespace

        if not self.calls.may_wait:
            return set()
        return self.calls.held_back(
            {r.rid for r in queue},
            {r.rid: partial(prompt, r) for r in queue[:_LOADED_AHEAD]},
        )

    def release_aborted_request(self, handle: Any) -> None:
        """Gives back the match of a request that was aborted while it waited."""
        self._drop_matches(
            [
                held
                for held in self._matches
                if held.references == 0 and held.request.cache_request_handle == handle
            ]
        )

    def _drop_matches(self, unused: list[HeldPrefix]) -> None:
        if unused:
            self._matches = [held for held in self._matches if held not in unused]
            self._drop(unused)
            self.token_to_kv_pool_allocator.trim()

    def begin_decode(self) -> None:
        """Gives back the unused matches of waiting requests, and publishes what the
        device has written by now. The allocator calls it once the requests of a step
        are chosen."""
        self.drop_unused_matches()
        self._publisher.publish_late()

    @contextmanager
    def scores_of(self, requests: Sequence[Any]) -> Iterator[None]:
        """Scores all requests in one call. Inside the context match_prefix returns
        these scores and holds nothing."""
        queries = [
            PrefixQuery(
                as_tokens(request.origin_input_ids + request.output_ids),
                self._namespace(request.extra_key, request.cache_salt),
            )
            for request in requests
        ]
        scores = []
        if queries:
            self.publish_along()
            scores = self.calls.score(queries)
        self._scores = {r.rid: s for r, s in zip(requests, scores, strict=True)}
        try:
            yield
        finally:
            self._scores = None

    def path_device_indices(self, node: HeldPrefix) -> torch.Tensor:
        """Returns the slots of the matched pages, as a tensor on the device."""
        first_slots = node.page_ids.astype(np.int64) * self.page_size
        slots = torch.from_numpy((first_slots[:, None] + self._page_slots).ravel())
        return slots.to(self.token_to_kv_pool_allocator.device)

    def promised_pages(self) -> int:
        """Returns the number of free pages that admitted prompts have yet to take."""
        promised = 0
        growing = []
        for held in self._growing:
            pages = held.unallocated_pages(self.page_size)
            if pages > 0:
                promised += pages
                growing.append(held)
        self._growing = growing
        return promised

    # Publishing.

    def publish_along(self) -> None:
        """Publishes what the device has written, however little, along with the next
        call."""
        self._publisher.publish_late(goes_along=True)

    @contextmanager
    def publishing_together(self) -> Iterator[None]:
        """Collects the publications inside the context and sends them together at its
        end."""
        with self._publisher.together():
            yield

    def checkpoint(self, req: Any, *, up_to: int, **_: Any) -> None:
        self._publisher.checkpoint(req, up_to)

    def claim_kv_row(self, req: Any) -> bool:
        """Publishes a request that will run again, so that it may find its KV then.
        SGLang would discard that KV. SGLang calls this before all else when it gives
        back a request's row. Returns False, because this cache does not claim the
        row."""
        self._publisher.publish_what_will_run_again(req)
        return False

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        held, req.last_node = req.last_node, self.root_node
        if held is not None and held is not self.root_node:
            self._drop([held])
        self.token_to_kv_pool_allocator.trim()

    def _drop(self, dropped: Sequence[HeldPrefix]) -> None:
        """Gives back what the prefixes hold. A lock that a publication has already
        released is not released again."""
        for held in dropped:
            self._publisher.settle(held)
        self.calls.release([held.lock_id for held in dropped if held.lock_id])
        for held in dropped:
            held.lock_id = 0
            held.is_over = True
            held.waiting = None
            for pages in held.duplicates:
                self.token_to_kv_pool_allocator.add(pages)
            held.duplicates = []

    # References, which SGLang counts.

    def inc_lock_ref(self, node: HeldPrefix) -> IncLockRefResult:
        node.references += 1
        return IncLockRefResult(delta=0)

    def dec_lock_ref(self, node: HeldPrefix, params: Any = None) -> DecLockRefResult:
        node.references -= 1
        return DecLockRefResult(delta=0)

    # Room in the pool.

    def evict(self, params: EvictParams) -> EvictResult:
        """Reserves pages for this engine. Pando evicts as much as it needs to for
        them."""
        pages = -(-params.num_tokens // self.page_size)
        page_ids = self.calls.allocate(pages) if pages > 0 else _NO_PAGES
        self.token_to_kv_pool_allocator.add(page_ids)
        return EvictResult(num_tokens_evicted=page_ids.size * self.page_size)

    def evictable_size(self) -> int:
        """Returns the tokens for which pandod had free or evictable pages at its last
        answer."""
        room = self.calls.room
        return (room.free + room.evictable) * int(self.page_size)

    def protected_size(self) -> int:
        """Returns the tokens of the pool that are neither free, evictable nor reserved
        by this engine."""
        allocator = self.token_to_kv_pool_allocator
        owned = allocator.owned * self.page_size
        return int(allocator.size - self.evictable_size() - owned)

    def total_size(self) -> int:
        return self.protected_size() + self.evictable_size()

    def reset(self) -> None:
        """Gives back unused matches and flushes nothing, because others share the
        cache. SGLang calls it when no request is left."""
        self.drop_unused_matches()

    def pretty_print(self) -> None:
        print(f"Pando: {self.calls.room}, {self.token_to_kv_pool_allocator.owned} own")

    def _namespace(
        self, extra_key: str | None, cache_salt: str | None
    ) -> Namespace | None:
        if self.weights:
            extra_key = f"{extra_key or ''}{_WEIGHTS}{self.weights}"
        if extra_key is None and cache_salt is None:
            return None
        return Namespace(
            extra_key=None if extra_key is None else short_name(extra_key),
            cache_salt=None if cache_salt is None else short_name(cache_salt),
        )


_NO_PAGES = np.empty(0, np.uint32)


def _calls(context: Any) -> Calls:
    group, client = context.tp_group, session()
    leads = context.tp_rank == 0
    leader = group.broadcast_object(client.session_id if leads else None)
    if not leads:
        # The link keeps pandod from giving the leader's pages to others while this rank
        # may write them.
        client.link_session(leader)
    return Calls(client if leads else None, group.broadcast_object, wait())


def _fence(context: Any) -> DeviceFence:
    if context.params.token_to_kv_pool_allocator.device == "cpu":
        return NoFence()
    if get_schedule().disable_overlap_schedule:
        return NoFence()
    return StreamFence(context.tp_worker.model_runner.forward_stream)


def _result(tokens: int, node: HeldPrefix) -> MatchResult:
    return MatchResult(tokens, node, node, node)
