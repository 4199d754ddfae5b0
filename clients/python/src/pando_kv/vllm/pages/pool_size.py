"""The sizes of the pool as arguments of vLLM, before vLLM makes its configuration. They
replace the number of blocks that vLLM would derive from the free memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from pando_kv import Client
from pando_kv._presence import SCHEDULER_PATIENCE
from pando_kv._seams import require_seam
from pando_kv.vllm import CONNECTOR

# Seconds that a call at the start may take; a step waits SCHEDULER_PATIENCE at most.
_TIMEOUT = 30.0

# These stand for no bytes of KV and no share of a GPU's memory, because vLLM refuses
# zeros.
_NO_BYTES = 1
_NO_SHARE = 1e-9


def connect(transfer: Any, name: str) -> Client:
    """Opens a session at the address in the `kv_connector_extra_config` of `transfer`.
    Raises UnavailableError if pandod does not answer within _TIMEOUT seconds."""
    return Client(
        transfer.get_from_extra_config("pando_address", ""),
        name=f"vllm {name} {os.getpid()}",
        timeout=_TIMEOUT,
        token=os.environ.get("PANDO_TOKEN") or None,
        away_after=SCHEDULER_PATIENCE,
    )


def asking_the_pool(create_engine_config: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a wrapper of EngineArgs.create_engine_config that first fills the pool's
    sizes in, if the engine uses PandoConnector."""

    @functools.wraps(create_engine_config)
    def create(arguments: Any, *given: Any, **named: Any) -> Any:
        transfer = arguments.kv_transfer_config
        if transfer is not None and transfer.kv_connector == CONNECTOR:
            take_sizes_of_pool(arguments, transfer)
        return create_engine_config(arguments, *given, **named)

    return create


def take_sizes_of_pool(arguments: Any, transfer: Any) -> None:
    """Fills in the block size and the number of blocks that the operator did not give;
    a given one that differs from the pool's raises ValueError. With an open pool, a
    given block size stays. Always replaces `kv_cache_memory_bytes`, and changes the
    defaults of `async_scheduling` and `gpu_memory_utilization`. Raises RuntimeError if
    this vLLM is not one that was tested."""
    require_seam(CONNECTOR)
    with connect(transfer, "arguments") as client:
        pool = client.pool
    if not pool.is_open or arguments.block_size is None:
        _take(arguments, "block_size", pool.layout.page_tokens, "--page-tokens")
    # With an open pool, vLLM makes as many blocks as the pool has bytes for. With any
    # other pool the number of blocks is given below, and the bytes do not matter.
    arguments.kv_cache_memory_bytes = pool.shards[0].size_bytes
    if not pool.is_open:
        _take(arguments, "num_gpu_blocks_override", pool.capacity_pages, "--pool-pages")
        arguments.kv_cache_memory_bytes = _NO_BYTES
    if arguments.async_scheduling is None:
        arguments.async_scheduling = False
    # vLLM refuses to start if less than this share of the GPU's memory is free, and the
    # pool takes much of it. A share that the operator gave stays: it is the room for
    # weights and activations.
    if arguments.gpu_memory_utilization == type(arguments).gpu_memory_utilization:
        arguments.gpu_memory_utilization = _NO_SHARE


def _take(arguments: Any, field: str, of_pool: int, option: str) -> None:
    given = getattr(arguments, field)
    if given is None:
        setattr(arguments, field, of_pool)
    elif given != of_pool:
        flag = "--" + field.replace("_", "-")
        raise ValueError(
            f"pandod has {option} {of_pool}, and this engine {flag} {given}: start the "
            f"engine with {flag} {of_pool}, or without {flag}"
        )
