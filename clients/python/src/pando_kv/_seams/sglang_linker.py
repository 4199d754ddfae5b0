"""The parts of SGLang that PandoLinker overrides, hooks or calls."""

from __future__ import annotations

_LINKER = "sglang.srt.mem_cache.unified_cache.unified_cache_linker:"
_POOLS = "sglang.srt.mem_cache.hybrid_cache.linker_pool_assembler:"
_STORAGE = "sglang.srt.mem_cache.hicache_storage:"

LEANS_ON: dict[str, str | None] = {
    "sglang.srt.mem_cache.unified_cache.linker_factory:create_unified_cache_linker": (
        "server_args params backend config components forward_stream"
    ),
    **{
        f"{_LINKER}UnifiedCacheLinker.{name}": parameters
        for name, parameters in {
            "lookup": "self rid transfers",
            "load": "self rid transfers",
            "start_layer_wise_loading": "self",
            "finish_layer_wise_loading": "self counter_index",
            "cancel_queued_load": "self rid",
            "offload": "self transfers session_id",
            "num_completed_offloads": "self",
            "pop_completed_offload": "self",
            "record_offload_ready": "self",
            "reset": "self",
            "close": "self",
        }.items()
    },
    _LINKER + "UnifiedCacheLinkerWrapper._offload_node": "self node_id transfers",
    "sglang.srt.mem_cache.unified_radix_cache:UnifiedRadixCache."
    "get_prefix_hash_values": "self node_id",
    _LINKER + "LayerWiseLoadCounter": "num_layers on_layer_ready",
    _LINKER + "LayerWiseLoadCounter.update_producer": "self",
    _LINKER + "LayerWiseLoadCounter.complete": "self index layer",
    _LINKER + "LayerWiseLoadCounter.fail": "self index error",
    _LINKER + "LayerWiseLoadCounter.finish": "self index",
    _LINKER + "LayerWiseLoadCounter.reset": "self",
    _POOLS + "DevicePoolEntry": (
        "name indices_from_pool device_pool components layer_mapping page_size "
        "rows_are_pages packed index_mapper"
    ),
    _POOLS + "DevicePoolGroup": "entries num_layers page_size rank_replicated",
    _POOLS + "DevicePoolGroup.resolve_transfers": (
        "self transfers allow_partial allow_missing_kv"
    ),
    _POOLS + "resolve_hybrid_device_pool_group": (
        "kvcache page_size params components"
    ),
    _POOLS + "_mha_device_pool_entry": (
        "name pool layer_mapping page_size indices_from_pool"
    ),
    _POOLS + "_mamba_device_pool_entry": "req_to_token_pool start_layer",
    _STORAGE + "PoolTransfer": (
        "name host_indices device_indices keys hit_policy nodes_to_load "
        "indices_from_pool block_pages group_pages"
    ),
    **dict.fromkeys(
        [
            _STORAGE + "PoolName.KV",
            _STORAGE + "PoolName.MAMBA",
            _STORAGE + "PoolName.SWA",
            _STORAGE + "PoolHitPolicy.BLOCK_GROUPS",
            _STORAGE + "PoolHitPolicy.TRAILING_PAGES",
            "sglang.srt.mem_cache.memory_pool:HybridLinearKVPool",
            "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool",
            "sglang.srt.mem_cache.memory_pool:MLATokenToKVPool",
            "sglang.srt.mem_cache.swa_memory_pool:SWAKVPool",
            "sglang.srt.mem_cache.unified_cache.component_type:ComponentType",
        ]
    ),
    "sglang.srt.mem_cache.memory_pool:HybridReqToTokenPool."
    "register_layer_transfer_counter": "self layer_transfer_counter",
    "sglang.srt.runtime_context:get_serving": "",
    "sglang.srt.utils:get_device_module": "",
}
