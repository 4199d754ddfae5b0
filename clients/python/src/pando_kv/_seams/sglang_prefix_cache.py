"""The parts of SGLang that `--radix-cache-backend pando` overrides, hooks or calls."""

from __future__ import annotations

_ALLOCATOR = "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator."
_CACHE = "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache."
_POOL = "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool."
_SIZES = "sglang.srt.mem_cache.kv_cache_configurator:KVCacheConfigurator."
_UPDATER = (
    "sglang.srt.managers.scheduler_components.weight_updater:"
    "SchedulerWeightUpdaterManager."
)

# These methods change weights, perhaps only some of them, and SGLang does not always
# report a change afterwards.
WEIGHT_UPDATES = tuple(
    _UPDATER + name
    for name in (
        "update_weights_from_disk",
        "update_weights_from_distributed",
        "update_weights_from_tensor",
        "update_weights_from_ipc",
        "begin_weight_update",
    )
)

LEANS_ON: dict[str, str | None] = {
    _CACHE + "match_prefix": "self params",
    _CACHE + "checkpoint": "self req up_to kwargs",
    _CACHE + "claim_kv_row": "self req",
    _CACHE + "on_release": "self req checkpointed",
    _CACHE + "evict": "self params",
    _CACHE + "inc_lock_ref": "self node",
    _CACHE + "dec_lock_ref": "self node params",
    _CACHE + "path_device_indices": "self node",
    _ALLOCATOR + "clear": "self",
    _ALLOCATOR + "merge_and_sort_free": "self",
    _ALLOCATOR + "create_prefill_budget": "self tree_cache num_mixed_decode_tokens",
    _ALLOCATOR + "alloc_extend": (
        "self prefix_lens prefix_lens_cpu seq_lens seq_lens_cpu last_loc "
        "extend_num_tokens num_new_pages"
    ),
    _ALLOCATOR + "evict_to_free_tokens": "self tree_cache num_tokens",
    _ALLOCATOR + "check_decode_capacity": (
        "self num_tokens tree_cache requests spec_algorithm"
    ),
    "sglang.srt.mem_cache.prefill_budget:PrefillBudget.check_prefill": (
        "self extend_input_len total_tokens max_new_tokens input_tokens "
        "[auxiliary_swa_host_hit_length] swa_host_hit_length chunk_limit"
    ),
    "sglang.srt.mem_cache.prefill_budget:PrefillBudget.available_chunk_tokens": (
        "self chunk_limit"
    ),
    _POOL + "_create_buffers": "self",
    _POOL + "_build_kv_buffer_descs": "self",
    _POOL + "_init_data_ptrs_and_strides": "self",
    "sglang.srt.platforms.interface:SRTPlatform.apply_server_args_defaults": (
        "self server_args"
    ),
    _SIZES + "_profile_available_bytes": "self pre_model_load_memory",
    _SIZES + "pool_page_size": None,
    _SIZES + "use_mla_backend": None,
    _SIZES + "is_hybrid_swa": None,
    _SIZES + "mambaish_config": None,
    "sglang.srt.managers.schedule_policy:SchedulePolicy.calc_priority": (
        "self waiting_queue running_batch processed_tokens"
    ),
    "sglang.srt.managers.scheduler:Scheduler.get_new_batch_prefill": (
        "self running_batch"
    ),
    "sglang.srt.managers.scheduler:Scheduler.process_batch_result": "self batch result",
    "sglang.srt.managers.scheduler:Scheduler.update_running_batch": "self batch",
    "sglang.srt.managers.schedule_batch:ScheduleBatch."
    "new_tokens_required_next_decode": "self selected_indices",
    "sglang.srt.managers.schedule_batch:ScheduleBatch.retract_decode": "self",
    "sglang.srt.managers.schedule_policy:SchedulePolicy._determine_active_policy": (
        "self waiting_queue"
    ),
    _UPDATER + "record_weight_version_after_update": "self weight_version",
    **dict.fromkeys(WEIGHT_UPDATES, "self recv_req"),
    _CACHE + "release_aborted_request": ("self handle"),
    "sglang.srt.mem_cache.registry:register_radix_cache_backend": "name factory",
    "sglang.srt.managers.schedule_batch:Req.owned_kv_len": "self",
    "sglang.srt.managers.schedule_batch:Req.refresh_fill_ids": "self",
    "sglang.srt.distributed.parallel_state:GroupCoordinator.broadcast_object": (
        "self obj src"
    ),
    **dict.fromkeys(
        [
            f"sglang.srt.mem_cache.base_prefix_cache:{name}"
            for name in (
                "DecLockRefResult",
                "EvictParams",
                "EvictResult",
                "IncLockRefResult",
                "MatchPrefixParams",
                "MatchResult",
            )
        ]
        + [
            "sglang.srt.managers.schedule_policy:CacheAwarePolicy",
            "sglang.srt.configs.model_config:ModelConfig",
        ]
    ),
    **{
        f"sglang.srt.runtime_context:{name}": ""
        for name in (
            "get_memory",
            "get_parallel",
            "get_schedule",
            "get_server_args",
            "get_serving",
        )
    },
}
