"""The parts of vLLM that PandoOffloadingSpec overrides or calls."""

from __future__ import annotations

_BASE = "vllm.v1.kv_offload.base:"
_COPIES = "vllm.v1.kv_offload.cpu.gpu_worker:SingleDirectionOffloadingHandler."

LEANS_ON: dict[str, str | None] = {
    **{
        _BASE + name: parameters
        for name, parameters in {
            "OffloadingSpec.__init__": "self config",
            "OffloadingSpec.get_manager": "self",
            "OffloadingSpec.get_worker": "self kv_caches",
            "OffloadingManager.lookup": "self key req_context",
            "OffloadingManager.prepare_load": "self keys req_context",
            "OffloadingManager.complete_load": "self keys req_context",
            "OffloadingManager.prepare_store": "self keys req_context",
            "OffloadingManager.complete_store": "self keys req_context success",
            "OffloadingManager.on_new_request": "self req_context",
            "OffloadingManager.on_request_finished": "self req_context",
            "OffloadingManager.on_schedule_end": "self context",
            "OffloadingManager.has_pending_work": "self",
            "OffloadingManager.reset_cache": "self",
            "OffloadingManager.take_events": "self",
            "OffloadingManager.shutdown": "self",
            "OffloadingWorker.submit_store": "self job_id src_spec dst_spec",
            "OffloadingWorker.submit_load": (
                "self job_id src_spec dst_spec [expedited]"
            ),
            "OffloadingWorker.get_finished": "self",
            "OffloadingWorker.wait": "self job_ids",
            "OffloadingWorker.shutdown": "self",
            "PrepareStoreOutput": "keys_to_store store_spec evicted_keys",
            "TransferResult": "job_id success transfer_size transfer_time",
            "LoadStoreSpec": None,
            "BlockIDsLoadStoreSpec": "block_ids",
            "GPULoadStoreSpec": "block_ids group_sizes block_indices",
            "CanonicalKVCaches": "tensors group_data_refs",
            "CanonicalKVCacheRef": "tensor_idx page_size_bytes mapping",
            "ReqContext": "req_id kv_transfer_params kv_hints load_tier_filter",
            "ReqContext._offload_key_positions": None,
            "ReqContext.get_state": "self cls",
            "ReqContext.set_state": "self val",
            "RequestOffloadingContext": "policy",
            "ScheduleEndContext": "new_req_ids preempted_req_ids",
            "LookupResult.MISS": None,
            "LookupResult.HIT": None,
            "LookupResult.HIT_PENDING": None,
            "LookupResult.RETRY": None,
            "Medium.CPU": None,
            "Locality.LOCAL": None,
            "OffloadKey": None,
            "OffloadingEvent": (
                "keys medium removed [locality] [ownership] [removal_expected] "
                "[metadata_only]"
            ),
            "get_offload_group_idx": "key",
        }.items()
    },
    "vllm.v1.kv_offload.config:OffloadingConfig": (
        "groups worker_kv_bytes_per_block enable_kv_cache_events extra_config "
        "engine_id model cache parallel replicated_layout canonical_layout "
        "kv_cache_layout"
    ),
    "vllm.v1.kv_offload.config:OffloadingGroupConfig": (
        "tokens_per_block layer_names group_id [sliding_window_size_in_chunks]"
    ),
    "vllm.config:get_current_vllm_config_or_none": "",
    "vllm.config:VllmConfig.use_v2_model_runner": None,
    "vllm.v1.kv_cache_interface:KVCacheConfig.needs_kv_cache_zeroing": None,
    "vllm.distributed.kv_transfer:get_kv_transfer_group": "",
    "vllm.distributed.kv_transfer:has_kv_transfer_group": "",
    "vllm.utils.hashing:get_hash_fn_by_name": "hash_fn_name",
    "vllm.platforms:current_platform": None,
    "vllm.platforms.interface:Platform.is_cpu": "self",
    "vllm.config:ModelConfig.use_mla": None,
    # DeviceCopies calls these, for blocks in the memory of a GPU.
    _COPIES + "__init__": (
        "self gpu_tensors cpu_tensors blocks_per_chunk layer_refs_per_group gpu_to_cpu "
        "canonical_layout host_memory_is_pinned"
    ),
    _COPIES + "transfer_async": "self job_id src_spec dst_spec",
    _COPIES + "get_finished": "self",
    _COPIES + "wait": "self job_ids",
    _COPIES + "shutdown": "self",
}
