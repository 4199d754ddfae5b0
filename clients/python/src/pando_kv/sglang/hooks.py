"""The backend's name and the hooks, which are registered when SGLang starts."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from typing import Any

from pando_kv._seams import require_seam
from pando_kv._seams.sglang_prefix_cache import WEIGHT_UPDATES
from pando_kv.sglang import BACKEND, SEAM

_CALC_PRIORITY = "sglang.srt.managers.schedule_policy.SchedulePolicy.calc_priority"
_NEW_PREFILL = "sglang.srt.managers.scheduler.Scheduler.get_new_batch_prefill"
_DECODE = "sglang.srt.managers.scheduler.Scheduler.update_running_batch"
_RETRACT = "sglang.srt.managers.schedule_batch.ScheduleBatch.retract_decode"
_RESULT = "sglang.srt.managers.scheduler.Scheduler.process_batch_result"
_KV_BYTES = (
    "sglang.srt.mem_cache.kv_cache_configurator."
    "KVCacheConfigurator._profile_available_bytes"
)
_OFFER = (
    "sglang.srt.mem_cache.unified_cache.unified_cache_linker."
    "UnifiedCacheLinkerWrapper._offload_node"
)
_AFTER_WEIGHT_UPDATE = (
    "sglang.srt.managers.scheduler_components.weight_updater."
    "SchedulerWeightUpdaterManager.record_weight_version_after_update"
)


def register_hooks() -> None:
    from sglang.srt.mem_cache.registry import register_radix_cache_backend
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    register_radix_cache_backend(BACKEND, _make_prefix_cache)
    HookRegistry.register(_KV_BYTES, _leave_kv_to_pool, HookType.AROUND)
    HookRegistry.register(_CALC_PRIORITY, _rank_in_one_call, HookType.AROUND)
    HookRegistry.register(_NEW_PREFILL, _hold_back, HookType.AROUND)
    HookRegistry.register(_DECODE, _wait_for_a_page, HookType.AROUND)
    HookRegistry.register(_RETRACT, _retract_the_last, HookType.AROUND)
    HookRegistry.register(_RESULT, _publish_together, HookType.AROUND)
    HookRegistry.register(_OFFER, _say_what_is_before, HookType.AROUND)
    for update in WEIGHT_UPDATES:
        HookRegistry.register(
            update.replace(":", "."), _expect_other_weights, HookType.BEFORE
        )
    HookRegistry.register(_AFTER_WEIGHT_UPDATE, _name_weights, HookType.AFTER)


def _make_prefix_cache(context: Any) -> Any:
    require_seam(SEAM)
    from pando_kv.sglang.prefix_cache import PandoPrefixCache
    from pando_kv.sglang.support import refuse_what_is_not_supported

    refuse_what_is_not_supported(context)
    return PandoPrefixCache(context)


def _leave_kv_to_pool(original: Callable[..., int], *given: Any, **named: Any) -> int:
    from pando_kv.sglang.pool_size import leave_kv_to_pool

    return leave_kv_to_pool(original, *given, **named)


def _rank_in_one_call(
    original: Callable[..., None],
    policy: Any,
    waiting_queue: list[Any],
    *rest: Any,
    **named: Any,
) -> None:
    """Scores all waiting requests in one call before SGLang ranks them. SGLang alone
    would match each request by itself."""
    from sglang.srt.managers.schedule_policy import CacheAwarePolicy

    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache = policy.tree_cache
    ranks = isinstance(cache, PandoPrefixCache) and isinstance(
        policy._determine_active_policy(waiting_queue), CacheAwarePolicy
    )
    if not ranks:
        return original(policy, waiting_queue, *rest, **named)
    with cache.scores_of(waiting_queue):
        return original(policy, waiting_queue, *rest, **named)


def _hold_back(
    original: Callable[..., Any], scheduler: Any, *given: Any, **named: Any
) -> Any:
    """Removes the requests whose prompts a tier loads from the queue while SGLang
    chooses requests. SGLang then admits the others as if these came later."""
    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache, queue = scheduler.tree_cache, scheduler.waiting_queue
    if not isinstance(cache, PandoPrefixCache):
        return original(scheduler, *given, **named)
    names = cache.held_back(queue)
    if not names:
        return original(scheduler, *given, **named)
    held = {request for request in queue if request.rid in names}
    scheduler.waiting_queue = [request for request in queue if request not in held]
    try:
        return original(scheduler, *given, **named)
    finally:
        # Requests that were in the queue keep their places. Running requests that
        # SGLang has preempted meanwhile go to the end.
        left, before = scheduler.waiting_queue, set(queue)
        stay = held.union(left)
        scheduler.waiting_queue = [request for request in queue if request in stay]
        scheduler.waiting_queue += [r for r in left if r not in before]


def _wait_for_a_page(original: Callable[..., Any], scheduler: Any, batch: Any) -> Any:
    """Returns None while the last request waits for a page: SGLang then decodes nothing
    in this step."""
    from pando_kv.sglang.allocator import PandoAllocator

    allocator = scheduler.token_to_kv_pool_allocator
    if isinstance(allocator, PandoAllocator) and allocator.waits_to_decode(batch):
        return None
    return original(scheduler, batch)


def _retract_the_last(original: Callable[..., Any], batch: Any) -> Any:
    """Retracts the last request instead of aborting it. SGLang aborts it because no
    other running request has pages to give back; with Pando other engines have, so the
    request waits for them in the queue."""
    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache = batch.tree_cache
    if not isinstance(cache, PandoPrefixCache):
        return original(batch)
    # SGLang cannot retract a request with beams.
    cache.retractable = [
        request
        for request in batch.reqs
        if request.to_finish is None and request.beam_group is None
    ]
    retracted, new_token_ratio, aborted = original(batch)
    if batch.is_empty() and aborted and aborted[-1] in cache.retractable:
        last = aborted.pop()
        last.to_finish = None
        retracted.append(last)
    cache.retractable = []
    return retracted, new_token_ratio, aborted


def _publish_together(
    original: Callable[..., Any], scheduler: Any, *given: Any, **named: Any
) -> Any:
    """Publishes the requests of a batch in one call. SGLang checkpoints them one by
    one."""
    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache = scheduler.tree_cache
    if not isinstance(cache, PandoPrefixCache):
        return original(scheduler, *given, **named)
    with cache.publishing_together():
        return original(scheduler, *given, **named)


def _say_what_is_before(
    original: Callable[..., None], wrapper: Any, node: Any, *rest: Any, **named: Any
) -> None:
    """Gives the linker a way to find the page before a node's first page. SGLang offers
    the pages of a node without naming that page."""
    linker = _linker_of(wrapper.cache)
    if linker is None:
        return original(wrapper, node, *rest, **named)

    def key_before() -> str | None:
        keys = wrapper.cache.get_prefix_hash_values(node)
        return keys[-1] if keys else None

    linker.key_before = key_before
    return original(wrapper, node, *rest, **named)


def _linker_of(cache: Any) -> Any:
    """Returns the PandoLinker of SGLang's own tree, or None if it has none."""
    linker = getattr(getattr(cache, "linker", None), "cache_linker", None)
    # If PandoLinker's module was never imported, the linker is not a PandoLinker.
    ours = sys.modules.get("pando_kv.sglang.linker.linker")
    if ours is None or not isinstance(linker, ours.PandoLinker):
        return None
    return linker


def _expect_other_weights(updater: Any, *_: Any, **__: Any) -> None:
    """Gives the weights a new, unique version before an update. KV of the old weights
    must not be matched any more, even if the update fails."""
    _set_weights(updater, uuid.uuid4().hex)


def _name_weights(_: None, updater: Any, weight_version: str | None) -> None:
    """Takes the version's name after an update. Engines that were given the same name
    share their KV again; without a name this engine shares with no other."""
    if weight_version:
        _set_weights(updater, weight_version)
    else:
        _expect_other_weights(updater)


def _set_weights(updater: Any, weights: str) -> None:
    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache = updater.scheduler.tree_cache
    if isinstance(cache, PandoPrefixCache):
        cache.weights = weights
    linker = _linker_of(cache)
    if linker is not None:
        linker.expect_other_weights(weights)
