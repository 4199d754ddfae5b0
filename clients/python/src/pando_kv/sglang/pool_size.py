"""The size of SGLang's KV memory: the size of the pool, however much device memory is
free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pando_kv import PoolDescription
from pando_kv.sglang import BACKEND
from pando_kv.sglang.attachment import connect

# More bytes than any pool has, so that --max-total-tokens alone limits the tokens.
_NO_LIMIT = 1 << 60


def tokens_of(pool: PoolDescription) -> int:
    """Returns the tokens for which the pool has room. Page 0 is not counted, because
    engines never use it."""
    return (pool.capacity_pages - 1) * pool.layout.page_tokens


def take_sizes_of_pool(server_args: Any) -> None:
    """Sets --page-size and --max-total-tokens from the pool if they were not given.
    Given values are compared with the pool when the engine attaches it. An open pool
    has no size until an engine has said its layout, see leave_kv_to_pool."""
    with connect() as client:
        pool = client.pool
    if server_args.page_size is None:
        server_args.page_size = pool.layout.page_tokens
    if server_args.max_total_tokens is None and not pool.is_open:
        server_args.max_total_tokens = tokens_of(pool)


def leave_kv_to_pool(
    original: Callable[..., int], configurator: Any, pre_model_load_memory: int
) -> int:
    """Returns the bytes that SGLang may plan for KV: the size of the pool, or a number
    without effect if --max-total-tokens limits the tokens.

    `original` is SGLang's own computation: the free memory less weights and
    activations. Its result is not used with this backend, because SGLang allocates none
    of Pando's pool. Raises ValueError if too little memory is free for activations, or
    if the engine does not fit the pool."""
    from sglang.srt.runtime_context import get_memory, get_schedule

    # Other kinds of models are refused later. Until then SGLang allocates their KV.
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
