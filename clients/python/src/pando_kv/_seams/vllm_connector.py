"""The parts of vLLM that PandoConnector overrides or calls; some are private."""

from __future__ import annotations

_V1 = "vllm.distributed.kv_transfer.kv_connector.v1.base:"
_CORE = "vllm.v1.core."

LEANS_ON: dict[str, str | None] = {
    "vllm.distributed.kv_transfer.kv_connector.factory:"
    "KVConnectorFactory.register_connector": "name module_path class_name",
    "vllm.engine.arg_utils:EngineArgs.create_engine_config": (
        "self usage_context headless"
    ),
    **{
        f"vllm.engine.arg_utils:EngineArgs.{name}": None
        for name in (
            "async_scheduling",
            "block_size",
            "gpu_memory_utilization",
            "kv_cache_memory_bytes",
            "kv_transfer_config",
            "num_gpu_blocks_override",
        )
    },
    _V1 + "KVConnectorRole.SCHEDULER": None,
    _V1 + "KVConnectorMetadata": "",
    _V1 + "KVConnectorWorkerMetadata.aggregate": "self other",
    **{
        f"{_V1}KVConnectorBase_V1.{name}": parameters
        for name, parameters in {
            "__init__": "self vllm_config role kv_cache_config",
            "get_mem_pool_context": "self",
            "register_kv_caches": "self kv_caches",
            "start_load_kv": "self forward_context kwargs",
            "wait_for_layer_load": "self layer_name",
            "save_kv_layer": "self layer_name kv_layer attn_metadata kwargs",
            "wait_for_save": "self",
            "build_connector_worker_meta": "self",
            "bind_kv_cache_manager": "self kv_cache_manager",
            "get_num_new_matched_tokens": "self request num_computed_tokens",
            "update_state_after_alloc": "self request blocks num_external_tokens",
            "build_connector_meta": "self scheduler_output",
            "update_connector_output": "self connector_output",
            "request_finished": "self request block_ids",
            "reset_cache": "self",
            "shutdown": "self",
        }.items()
    },
    "vllm.distributed.parallel_state:get_tensor_model_parallel_rank": "",
    _CORE + "block_pool:BlockPool.get_num_free_blocks": "self",
    _CORE + "block_pool:BlockPool.get_new_blocks": "self num_blocks",
    _CORE + "block_pool:BlockPool.touch": "self blocks",
    _CORE + "block_pool:BlockPool.free_blocks": "self ordered_blocks",
    _CORE + "block_pool:BlockPool.cache_full_blocks": (
        "self request blocks num_cached_blocks num_full_blocks block_size "
        "kv_cache_group_id block_mask"
    ),
    _CORE + "block_pool:BlockPool.reset_prefix_cache": "self",
    _CORE + "kv_cache_manager:KVCacheManager.get_blocks": "self request_id",
    _CORE + "kv_cache_manager:KVCacheManager.create_kv_cache_blocks": "self blocks",
    _CORE + "kv_cache_manager:KVCacheManager.get_computed_blocks": (
        "self request [max_cache_hit_length]"
    ),
    "vllm.config:CacheConfig.get_resolved_kv_cache_layout": "self",
    "vllm.v1.kv_cache_interface:create_kv_cache_views": (
        "raw spec num_blocks layout kv_cache_tensor kernel_block_size"
    ),
    "vllm.v1.worker.utils:allocate_kv_cache": (
        "kv_cache_config device layout kernel_block_sizes"
    ),
}
