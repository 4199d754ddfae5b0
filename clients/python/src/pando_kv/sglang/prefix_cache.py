"""SGLang's prefix cache, which is Pando's index.

SGLang's "nodes" are HeldPrefix objects here, one for each match of a request. The way
of a request: `match_prefix` locks its prefix and reserves pages for the rest of its
prompt, one call; `checkpoint` publishes what it has computed, the last one also
releases the lock, one call. What is published stays in the request's own row, so a
publication may be late and changes nothing under a step that runs.
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

# Between what a caller gave as extra_key and the version of the weights.
_WEIGHTS = "\x1fweights="
# What is loaded for requests further behind may be evicted before their turn.
_LOADED_AHEAD = 32


class PandoPrefixCache(BasePrefixCache):  # type: ignore[misc]
    """Made by SGLang's scheduler, which it serves and whose thread alone calls it. On
    each tensor-parallel rank there is one, and all take the same steps."""

    def __init__(self, context: Any) -> None:
        params = context.params
        self.req_to_token_pool = params.req_to_token_pool
        self.token_to_kv_pool_allocator = params.token_to_kv_pool_allocator
        self.page_size = params.page_size
        self._page_slots = np.arange(params.page_size)
        self.disable = False
        self.sliding_window_size = None
        self.weights = ""
        """Version of the weights, once they are others than at the start."""
        self.calls = _calls(context)
        self.fence = _fence(context)
        self.root_node = HeldPrefix()
        self.retractable: list[Any] = []
        """Requests that run again if the step under way retracts them."""
        self._matches: list[HeldPrefix] = []  # of this pass, used or not
        self._growing: list[HeldPrefix] = []  # whose prompts have not all their pages
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
        """For the prompt, and with a page of what comes after it."""
        prompt = len(request.full_untruncated_fill_ids)
        left = request.sampling_params.max_new_tokens - len(request.output_ids)
        first = prompt + max(0, min(left, self.page_size))
        return -(-prompt // self.page_size), -(-first // self.page_size)

    def take_refusal(self) -> bool:
        """Whether the last match found no room for its prompt."""
        is_refused, self._is_refused = self._is_refused, False
        return is_refused

    def drop_unused_matches(self) -> None:
        """Gives back what the last pass matched and did not admit."""
        self._publisher.settle_ended()
        unused = [held for held in self._matches if held.references == 0]
        self._matches.clear()
        self._drop_matches(unused)

    def held_back(self, queue: Sequence[Any]) -> set[str]:
        """Requests that are not to be matched yet, by their names: a tier loads what it
        has of their prompts."""

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
        """The request was aborted while it waited."""
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
        """The requests of this step are chosen: what waits gives back what it was
        matched with, and what the device has written by now is published."""
        self.drop_unused_matches()
        self._publisher.publish_late()

    @contextmanager
    def scores_of(self, requests: Sequence[Any]) -> Iterator[None]:
        """Matches are scores meanwhile, all of them from one call: nothing is held."""
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
        """The slots of the match."""
        first_slots = node.page_ids.astype(np.int64) * self.page_size
        slots = torch.from_numpy((first_slots[:, None] + self._page_slots).ravel())
        return slots.to(self.token_to_kv_pool_allocator.device)

    def promised_pages(self) -> int:
        """Free pages that prompts which were admitted have yet to take."""
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
        """What is written goes with the next call, however little it is."""
        self._publisher.publish_late(goes_along=True)

    @contextmanager
    def publishing_together(self) -> Iterator[None]:
        """What is published meanwhile is read and sent in the end, at once."""
        with self._publisher.together():
            yield

    def checkpoint(self, req: Any, *, up_to: int, **_: Any) -> None:
        self._publisher.checkpoint(req, up_to)

    def claim_kv_row(self, req: Any) -> bool:
        """Called first of all when a request's row is given back. One that is to run
        again, whose KV SGLang would throw away, is published: it may find it then."""
        self._publisher.publish_what_will_run_again(req)
        return False

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        held, req.last_node = req.last_node, self.root_node
        if held is not None and held is not self.root_node:
            self._drop([held])
        self.token_to_kv_pool_allocator.trim()

    def _drop(self, dropped: Sequence[HeldPrefix]) -> None:
        """Gives back what is held; no call where a publication has done so."""
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

    # Locks, which SGLang counts.

    def inc_lock_ref(self, node: HeldPrefix) -> IncLockRefResult:
        node.references += 1
        return IncLockRefResult(delta=0)

    def dec_lock_ref(self, node: HeldPrefix, params: Any = None) -> DecLockRefResult:
        node.references -= 1
        return DecLockRefResult(delta=0)

    # Room.

    def evict(self, params: EvictParams) -> EvictResult:
        """Pages for this engine: Pando evicts what it needs for them."""
        pages = -(-params.num_tokens // self.page_size)
        page_ids = self.calls.allocate(pages) if pages > 0 else _NO_PAGES
        self.token_to_kv_pool_allocator.add(page_ids)
        return EvictResult(num_tokens_evicted=page_ids.size * self.page_size)

    def evictable_size(self) -> int:
        """What may be had of Pando, as its last answer told."""
        room = self.calls.room
        return (room.free + room.evictable) * int(self.page_size)

    def protected_size(self) -> int:
        """Tokens of all engines that this one can neither get nor has reserved."""
        allocator = self.token_to_kv_pool_allocator
        owned = allocator.owned * self.page_size
        return int(allocator.size - self.evictable_size() - owned)

    def total_size(self) -> int:
        return self.protected_size() + self.evictable_size()

    def reset(self) -> None:
        """Flushes nothing: others share the cache. Called when no request is left."""
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
        # The leader's pages are not given to others while this rank may write them.
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
