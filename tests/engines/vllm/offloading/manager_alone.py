"""Pando's manager for vLLM's scheduler, without an engine. A client states what a
worker would state."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pando_kv import Client, KindSpec
from pando_kv.vllm.offloading.identity import kind_identity, readiness
from pando_kv.vllm.offloading.scheduler import SharedBlocks
from vllm.v1.kv_offload.base import OffloadKey, ReqContext, make_offload_key
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig,
    OffloadingConfig,
    OffloadingGroupConfig,
    OffloadingModelConfig,
    OffloadingParallelConfig,
)

KEY_BYTES = 32
BLOCK_TOKENS = 16


@dataclass(frozen=True)
class ManagerAlone:
    manager: SharedBlocks
    worker: Client
    """The client that has opened the kinds; it may map the memory."""

    def close(self) -> None:
        self.manager.shutdown()
        self.worker.close()


def manager_alone(
    address: str, name: str, shard_bytes: Sequence[int], **client: Any
) -> ManagerAlone:
    """Connects a manager and its worker's client to the pandod at `address`.

    `shard_bytes` has the bytes of a block's shard for each group. Managers with equal
    `shard_bytes` share their blocks. Each manager needs another `name`."""
    worker, config = (
        Client(address, name=f"worker of {name}"),
        _config(name, shard_bytes),
    )
    digest = hashlib.sha256(repr(shard_bytes).encode()).hexdigest()[:32]
    worker.open_kinds(
        [
            KindSpec(
                kind_identity(digest, group), f"group {group}", KEY_BYTES, size_of_shard
            )
            for group, size_of_shard in enumerate(shard_bytes)
        ]
        + [readiness(name, 0, digest)]
    )
    is_changed = threading.Event()
    scheduler = Client(
        address,
        name=f"scheduler of {name}",
        on_session_lost=lambda _: is_changed.set(),
        **client,
    )
    return ManagerAlone(SharedBlocks(scheduler, is_changed, config), worker)


def prompt_keys(prompt: str, count: int, group: int = 0) -> list[OffloadKey]:
    """Returns the keys of the first `count` blocks of a prompt."""
    hashes = [hashlib.sha256(f"{prompt} {n}".encode()).digest() for n in range(count)]
    return [make_offload_key(each, group) for each in hashes]


def context_of(name: str, groups: Sequence[Sequence[OffloadKey]]) -> ReqContext:
    """Returns a context with all keys of the request, as vLLM gives it to a manager."""
    context = ReqContext(name)
    for keys in groups:
        for n, key in enumerate(keys):
            context.set_offload_key_position(key, (n + 1) * BLOCK_TOKENS)
    return context


def _config(name: str, shard_bytes: Sequence[int]) -> OffloadingConfig:
    return OffloadingConfig(
        groups=tuple(
            OffloadingGroupConfig(BLOCK_TOKENS, (f"layer of {group}",), group)
            for group in range(len(shard_bytes))
        ),
        worker_kv_bytes_per_block=max(shard_bytes),
        enable_kv_cache_events=False,
        extra_config={},
        engine_id=name,
        model=OffloadingModelConfig("none", "float32"),
        cache=OffloadingCacheConfig(BLOCK_TOKENS, 1),
        parallel=OffloadingParallelConfig(
            rank=0,
            world_size=1,
            tp_size=1,
            pp_size=1,
            pcp_size=1,
            dcp_size=1,
            data_parallel_index=0,
            data_parallel_size=1,
            data_parallel_rank_local=None,
            is_parallelism_agnostic=False,
        ),
    )
