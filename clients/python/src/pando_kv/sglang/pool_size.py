"""How large SGLang takes its KV memory to be: as the pool is, whatever is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pando_kv import PoolDescription
from pando_kv.sglang import BACKEND
from pando_kv.sglang.attachment import connect

# More bytes than any pool has: --max-total-tokens alone says how many tokens there are.
_NO_LIMIT = 1 << 60


def tokens_of(pool: PoolDescription) -> int:
    """Page 0 is no engine's."""
    return (pool.capacity_pages - 1) * pool.layout.page_tokens


def take_sizes_of_pool(server_args: Any) -> None:
    """Fills in --page-size and --max-total-tokens where they were not given. What was
    given is compared with the pool when that is attached. An open pool has a size when
    this engine has said its layout: see leave_kv_to_pool."""
    with connect() as client:
        pool = client.pool
    if server_args.page_size is None:
        server_args.page_size = pool.layout.page_tokens
    if server_args.max_total_tokens is None and not pool.is_open:
        server_args.max_total_tokens = tokens_of(pool)


def leave_kv_to_pool(
    original: Callable[..., int], configurator: Any, pre_model_load_memory: int
) -> int:
    """SGLang's bytes for KV are what its weights and activations leave of the memory
    that was free. Of Pando's pool it allocates none. Raises ValueError where
    activations have too little room."""
    from sglang.srt.runtime_context import get_memory, get_schedule

    # Models of another kind are refused later, and until then allocate.
    is_on_pool = get_memory().radix_cache_backend == BACKEND and not (
        configurator.use_mla_backend
        or configurator.is_hybrid_swa
        or configurator.mambaish_config
    )
    if not is_on_pool:
        return original(configurator, pre_model_load_memory)
    try:
        original(configurator, pre_model_load_memory)
    except ValueError as error:
        raise ValueError(
            "beside the weights and the pool of pandod too little memory is free for "
            f"activations. SGLang, which does not know that KV is the pool's: {error}"
        ) from error
    if get_schedule().max_total_tokens is not None:
        return _NO_LIMIT
    from pando_kv.sglang.kv_pool import say_layout

    pool = say_layout(configurator)
    return tokens_of(pool) // pool.layout.page_tokens * pool.page_bytes
