"""Tells vLLM of the pool before it makes its configuration: its blocks are the pool's
pages, whatever memory is free."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from pando_kv import Client
from pando_kv._presence import SCHEDULER_PATIENCE
from pando_kv._seams import require_seam
from pando_kv.vllm import CONNECTOR

# For the start; a step waits no longer than SCHEDULER_PATIENCE.
_TIMEOUT = 30.0

# vLLM takes no zeros here: a byte of KV, and the smallest share of a GPU.
_NO_BYTES = 1
_NO_SHARE = 1e-9


def connect(transfer: Any, name: str) -> Client:
    """A session, as `kv_connector_extra_config` in `transfer` says."""
    return Client(
        transfer.get_from_extra_config("pando_address", ""),
        name=f"vllm {name} {os.getpid()}",
        timeout=_TIMEOUT,
        token=os.environ.get("PANDO_TOKEN") or None,
        away_after=SCHEDULER_PATIENCE,
    )


def asking_the_pool(create_engine_config: Callable[..., Any]) -> Callable[..., Any]:
    """EngineArgs.create_engine_config, with the pool's sizes among its arguments."""

    @functools.wraps(create_engine_config)
    def create(arguments: Any, *given: Any, **named: Any) -> Any:
        transfer = arguments.kv_transfer_config
        if transfer is not None and transfer.kv_connector == CONNECTOR:
            take_sizes_of_pool(arguments, transfer)
        return create_engine_config(arguments, *given, **named)

    return create


def take_sizes_of_pool(arguments: Any, transfer: Any) -> None:
    """Fills in what was not given. Raises ValueError for what was, and is not the
    pool's; RuntimeError where vLLM is not one that was tested."""
    require_seam(CONNECTOR)
    with connect(transfer, "arguments") as client:
        pool = client.pool
    if not pool.is_open or arguments.block_size is None:
        _take(arguments, "block_size", pool.layout.page_tokens, "--page-tokens")
    # As many blocks as an open pool has bytes for, or those that are counted, whose
    # bytes do not matter.
    arguments.kv_cache_memory_bytes = pool.shards[0].size_bytes
    if not pool.is_open:
        _take(arguments, "num_gpu_blocks_override", pool.capacity_pages, "--pool-pages")
        arguments.kv_cache_memory_bytes = _NO_BYTES
    if arguments.async_scheduling is None:
        arguments.async_scheduling = False
    # A share of the GPU that was given is free for weights and activations, or vLLM
    # refuses to start.
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
