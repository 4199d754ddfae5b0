"""What SGLang is told when it starts: the backend's name, and two hooks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from pando_kv._tested_versions import require_tested_version
from pando_kv.sglang import BACKEND, TESTED_VERSIONS

_CALC_PRIORITY = "sglang.srt.managers.schedule_policy.SchedulePolicy.calc_priority"
_AFTER_WEIGHT_UPDATE = (
    "sglang.srt.managers.scheduler_components.weight_updater."
    "SchedulerWeightUpdaterManager.record_weight_version_after_update"
)


def register_hooks() -> None:
    from sglang.srt.mem_cache.registry import register_radix_cache_backend
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    register_radix_cache_backend(BACKEND, _make_prefix_cache)
    HookRegistry.register(_CALC_PRIORITY, _rank_in_one_call, HookType.AROUND)
    HookRegistry.register(_AFTER_WEIGHT_UPDATE, _forget_old_weights, HookType.AFTER)


def _make_prefix_cache(context: Any) -> Any:
    import sglang

    require_tested_version("SGLang", sglang.__version__, TESTED_VERSIONS)
    from pando_kv.sglang.prefix_cache import PandoPrefixCache
    from pando_kv.sglang.support import refuse_what_is_not_supported

    refuse_what_is_not_supported(context)
    return PandoPrefixCache(context)


def _rank_in_one_call(
    original: Callable[..., None],
    policy: Any,
    waiting_queue: list[Any],
    *rest: Any,
    **named: Any,
) -> None:
    """SGLang matches each waiting request by itself to rank them."""
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


def _forget_old_weights(_: None, updater: Any, weight_version: str | None) -> None:
    """KV of other weights must not be matched any more. Engines that were given the
    same name of the version share again."""
    from pando_kv.sglang.prefix_cache import PandoPrefixCache

    cache = updater.scheduler.tree_cache
    if isinstance(cache, PandoPrefixCache):
        cache.weights = weight_version or uuid.uuid4().hex
