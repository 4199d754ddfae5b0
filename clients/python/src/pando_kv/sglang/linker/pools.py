"""The group of the device pools whose pages are stored.

SGLang makes the group for the models that it has a direct linker for. SGLang refuses
models with plain attention, plain MLA, sliding windows, or plain attention beside
states; this module makes the group for those models.
"""

from __future__ import annotations

from typing import Any

from sglang.srt.mem_cache.hicache_storage import PoolName
from sglang.srt.mem_cache.hybrid_cache.linker_pool_assembler import (
    DevicePoolEntry,
    DevicePoolGroup,
    _mamba_device_pool_entry,
    _mha_device_pool_entry,
    resolve_hybrid_device_pool_group,
)
from sglang.srt.mem_cache.memory_pool import (
    HybridLinearKVPool,
    MHATokenToKVPool,
    MLATokenToKVPool,
)
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType

_FULL = {ComponentType.FULL}
_WINDOWS = {ComponentType.FULL, ComponentType.SWA}
_STATES = {ComponentType.FULL, ComponentType.MAMBA}
_DRAFTS = (
    "mtp_draft_device_pools",
    "sidecar_draft_device_pools",
    "mtp_draft_mamba_pools",
)


def device_pool_group(params: Any, components: set[ComponentType]) -> DevicePoolGroup:
    """Returns the group of the model's pools. Raises ValueError, with a message of one
    sentence, for a model whose pools are not known, and for a draft model beside pools
    that this module groups."""
    pool = params.token_to_kv_pool_allocator.get_kvcache()
    own = _own_group(pool, params, components)
    if own is None:
        return resolve_hybrid_device_pool_group(
            kvcache=pool,
            page_size=params.page_size,
            params=params,
            components=components,
        )
    if any(getattr(params, name, ()) for name in _DRAFTS):
        raise ValueError(
            "PandoLinker does not support a draft model beside a "
            f"{type(pool).__name__}: start without --speculative-algorithm"
        )
    return own


def _own_group(
    pool: Any, params: Any, components: set[ComponentType]
) -> DevicePoolGroup | None:
    """Returns the group if this module makes it, else None. Raises ValueError for MLA
    with scales."""
    page = params.page_size
    if type(pool) is MHATokenToKVPool and components == _FULL:
        layers = {layer: layer for layer in range(pool.layer_num)}
        keys_values = _mha_device_pool_entry(PoolName.KV, pool, layers, page)
        return DevicePoolGroup([keys_values], pool.layer_num, page)
    if type(pool) is MLATokenToKVPool and components == _FULL:
        return DevicePoolGroup(
            [_latent(pool, page)], pool.layer_num, page, rank_replicated=True
        )
    if type(pool) is SWAKVPool and components == _WINDOWS and _is_plain(pool):
        entries = [
            _mha_device_pool_entry(
                name, part, _layers_of(pool, is_window=is_window), page
            )
            for name, part, is_window in (
                (PoolName.KV, pool.full_kv_pool, False),
                (PoolName.SWA, pool.swa_kv_pool, True),
            )
        ]
        return DevicePoolGroup(entries, pool.layer_num, page)
    if (
        type(pool) is HybridLinearKVPool
        and type(pool.full_kv_pool) is MHATokenToKVPool
        and components == _STATES
    ):
        mapping = pool.full_attention_layer_id_mapping
        layers = {layer - pool.start_layer: at for layer, at in mapping.items()}
        entries = [
            _mha_device_pool_entry(PoolName.KV, pool.full_kv_pool, layers, page),
            _mamba_device_pool_entry(params.req_to_token_pool, pool.start_layer),
        ]
        last = max(layer for entry in entries for layer in entry.layer_mapping)
        return DevicePoolGroup(entries, last + 1, page)
    return None


def _latent(pool: Any, page: int) -> DevicePoolEntry:
    if pool.kv_scale_buffer is not None:
        raise ValueError("PandoLinker does not support MLA with scales")
    return DevicePoolEntry(
        name=PoolName.KV,
        indices_from_pool=PoolName.KV,
        device_pool=pool,
        components=[pool.kv_buffer],
        layer_mapping={layer: layer for layer in range(pool.layer_num)},
        page_size=page,
        rows_are_pages=False,
    )


def _is_plain(pool: Any) -> bool:
    parts = (pool.full_kv_pool, pool.swa_kv_pool)
    return all(type(part) is MHATokenToKVPool for part in parts)


def _layers_of(pool: Any, *, is_window: bool) -> dict[int, int]:
    """Returns the position of each layer in its part of a pool with sliding windows:
    the part of the windows, or the part of full attention."""
    return {
        layer - pool.start_layer: at
        for layer, (at, of_window) in pool.layers_mapping.items()
        if of_window == is_window
    }
