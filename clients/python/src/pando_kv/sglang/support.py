"""The features of SGLang that do not work with Pando."""

from __future__ import annotations

from typing import Any

from pando_kv.sglang import BACKEND
from pando_kv.sglang.allocator import PandoAllocator
from pando_kv.sglang.kv_pool import PandoKVPool

_BLOCKS_DO = "; blocks do: PandoLinker in docs/engines-sglang.md"


def refuse_what_is_not_supported(context: Any) -> None:
    """Raises ValueError, which names the feature, if SGLang's configuration uses a
    feature that does not work with Pando."""
    args = context.server_args
    reasons = {
        "--disable-radix-cache": context.disable_radix_cache,
        f"a model with sliding windows{_BLOCKS_DO}": context.is_hybrid_swa,
        f"a model with state-space layers{_BLOCKS_DO}": context.is_hybrid_ssm,
        "a model with sparse attention": context.is_dsa,
        "--enable-hierarchical-cache": context.enable_hierarchical_cache,
        "--enable-lmcache": args.enable_lmcache,
        "--enable-flexkv": args.enable_flexkv,
        "--enable-memory-saver": args.enable_memory_saver,
        "--speculative-algorithm": args.speculative_algorithm is not None,
        "--disaggregation-mode": args.disaggregation_mode != "null",
        "--pp-size above 1": args.pp_size > 1,
        "--dp-size above 1": args.dp_size > 1,
        "--dcp-size above 1": args.dcp_size > 1,
        "--schedule-policy dfs-weight": args.schedule_policy == "dfs-weight",
    }
    for what, is_so in reasons.items():
        if is_so:
            raise ValueError(f"--radix-cache-backend {BACKEND} does not support {what}")
    allocator = context.params.token_to_kv_pool_allocator
    pool = allocator.get_kvcache()
    if not isinstance(pool, PandoKVPool) or not isinstance(allocator, PandoAllocator):
        raise ValueError(
            f"--radix-cache-backend {BACKEND} does not support models without one pool "
            f"of keys and values: SGLang has made a {type(pool).__name__} and a "
            f"{type(allocator).__name__}{_BLOCKS_DO}"
        )
