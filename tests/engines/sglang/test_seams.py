"""What the adapter leans on in SGLang is there, and is what it was."""

import inspect
from types import SimpleNamespace

import pytest
import torch
from engines.models import LAYERS, LAYOUT, make_model
from pando_kv._tested_versions import require_tested_version
from pando_kv.sglang import TESTED_VERSIONS
from pando_kv.sglang.hooks import WEIGHT_UPDATES

# Parameters by name, of what the adapter overrides, replaces or hooks.
SIGNATURES = {
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.match_prefix": "self params",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.checkpoint": "self req up_to kwargs",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.claim_kv_row": "self req",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.on_release": "self req checkpointed",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.evict": "self params",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.inc_lock_ref": "self node",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.dec_lock_ref": "self node params",
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.path_device_indices": "self node",
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.clear": "self",
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.merge_and_sort_free": "self",
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.create_prefill_budget": (
        "self tree_cache num_mixed_decode_tokens"
    ),
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.alloc_extend": (
        "self prefix_lens prefix_lens_cpu seq_lens seq_lens_cpu last_loc "
        "extend_num_tokens num_new_pages"
    ),
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.evict_to_free_tokens": (
        "self tree_cache num_tokens"
    ),
    "sglang.srt.mem_cache.allocator:PagedTokenToKVPoolAllocator.check_decode_capacity": (
        "self num_tokens tree_cache requests spec_algorithm"
    ),
    "sglang.srt.mem_cache.prefill_budget:PrefillBudget.check_prefill": (
        "self extend_input_len total_tokens max_new_tokens input_tokens "
        "swa_host_hit_length chunk_limit"
    ),
    "sglang.srt.mem_cache.prefill_budget:PrefillBudget.available_chunk_tokens": (
        "self chunk_limit"
    ),
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool._create_buffers": "self",
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool._build_kv_buffer_descs": "self",
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool._init_data_ptrs_and_strides": "self",
    "sglang.srt.managers.schedule_policy:SchedulePolicy.calc_priority": (
        "self waiting_queue running_batch processed_tokens"
    ),
    "sglang.srt.managers.scheduler:Scheduler.get_new_batch_prefill": (
        "self running_batch"
    ),
    "sglang.srt.managers.scheduler:Scheduler.process_batch_result": "self batch result",
    "sglang.srt.managers.scheduler:Scheduler.update_running_batch": "self batch",
    "sglang.srt.managers.schedule_batch:ScheduleBatch.new_tokens_required_next_decode": (
        "self selected_indices"
    ),
    "sglang.srt.managers.schedule_policy:SchedulePolicy._determine_active_policy": (
        "self waiting_queue"
    ),
    (
        "sglang.srt.managers.scheduler_components.weight_updater:"
        "SchedulerWeightUpdaterManager.record_weight_version_after_update"
    ): "self weight_version",
    **dict.fromkeys(WEIGHT_UPDATES, "self recv_req"),
    "sglang.srt.mem_cache.base_prefix_cache:BasePrefixCache.release_aborted_request": (
        "self handle"
    ),
    "sglang.srt.mem_cache.registry:register_radix_cache_backend": "name factory",
    "sglang.srt.managers.schedule_batch:Req.owned_kv_len": "self",
    "sglang.srt.managers.schedule_batch:Req.refresh_fill_ids": "self",
    "sglang.srt.distributed.parallel_state:GroupCoordinator.broadcast_object": (
        "self obj src"
    ),
}


# Parameters that some releases add, which the adapter takes, too.
ADDED = {"auxiliary_swa_host_hit_length"}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_is_the_one_that_was_tested(name):
    import pkgutil

    inspected = inspect.signature(_original(pkgutil.resolve_name(name)))
    parameters = [each for each in inspected.parameters if each not in ADDED]
    assert " ".join(parameters) == SIGNATURES[name]


def _original(function):
    return inspect.unwrap(function)


def test_this_sglang_is_a_tested_one():
    import sglang

    require_tested_version("SGLang", sglang.__version__, TESTED_VERSIONS)


def test_another_version_is_refused_and_can_be_tried(monkeypatch):
    with pytest.raises(RuntimeError, match=r"0\.5\.23, and this is SGLang 0\.6\.0"):
        require_tested_version("SGLang", "0.6.0", TESTED_VERSIONS)
    monkeypatch.setenv("PANDO_ANY_ENGINE_VERSION", "1")
    require_tested_version("SGLang", "0.6.0", TESTED_VERSIONS)


@pytest.fixture
def context():
    """What SGLang makes its prefix cache with: all of it goes together."""
    args = SimpleNamespace(
        enable_lmcache=False,
        enable_flexkv=False,
        enable_memory_saver=False,
        speculative_algorithm=None,
        disaggregation_mode="null",
        pp_size=1,
        dp_size=1,
        dcp_size=1,
        schedule_policy="lpm",
    )
    return SimpleNamespace(
        server_args=args,
        disable_radix_cache=False,
        is_hybrid_swa=False,
        is_hybrid_ssm=False,
        is_dsa=False,
        enable_hierarchical_cache=False,
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("speculative_algorithm", "EAGLE", "--speculative-algorithm"),
        ("disaggregation_mode", "prefill", "--disaggregation-mode"),
        ("pp_size", 2, "--pp-size"),
        ("dp_size", 2, "--dp-size"),
        ("dcp_size", 2, "--dcp-size"),
        ("enable_lmcache", True, "--enable-lmcache"),
        ("enable_flexkv", True, "--enable-flexkv"),
        ("schedule_policy", "dfs-weight", "dfs-weight"),
        ("enable_memory_saver", True, "--enable-memory-saver"),
        ("is_hybrid_swa", True, "sliding windows"),
        ("is_hybrid_ssm", True, "state-space"),
        ("is_dsa", True, "sparse attention"),
        ("enable_hierarchical_cache", True, "--enable-hierarchical-cache"),
        ("disable_radix_cache", True, "--disable-radix-cache"),
    ],
)
def test_what_does_not_go_together_is_refused(context, field, value, said):
    from pando_kv.sglang.support import refuse_what_is_not_supported

    args = context.server_args
    setattr(args if hasattr(args, field) else context, field, value)
    with pytest.raises(ValueError, match=said):
        refuse_what_is_not_supported(context)


def test_another_pool_than_one_of_keys_and_values_is_refused(context):
    """SGLang makes such a pool for latent attention."""
    from pando_kv.sglang.support import refuse_what_is_not_supported
    from sglang.srt.mem_cache.memory_pool import MLATokenToKVPool

    of_mla = MLATokenToKVPool.__new__(MLATokenToKVPool)
    context.params = SimpleNamespace(
        token_to_kv_pool_allocator=SimpleNamespace(get_kvcache=lambda: of_mla)
    )
    with pytest.raises(ValueError, match="SGLang has made a MLATokenToKVPool"):
        refuse_what_is_not_supported(context)


def test_another_version_is_refused_where_the_cache_is_made(context, monkeypatch):
    from pando_kv.sglang.hooks import _make_prefix_cache

    monkeypatch.setattr("sglang.__version__", "0.6.0")
    with pytest.raises(
        RuntimeError, match=r"this is SGLang 0\.6\.0; PANDO_ANY_ENGINE_VERSION=1 tries"
    ):
        _make_prefix_cache(context)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("is_quantized_kv_cache", True, "a quantized KV cache"),
        ("store_dtype", torch.uint8, "--kv-cache-dtype torch.float32"),
        ("kv_cache_layout", "hnd", "KV layout 'hnd'"),
        ("v_head_dim", 64, "values of another size than keys"),
        ("post_capture_active", True, "after graph capture"),
        ("page_size", 1, "--page-size 1"),
    ],
)
def test_a_pool_that_is_not_as_pandos_is_refused(field, value, said):
    from pando_kv.sglang.kv_pool import PandoKVPool

    pool = SimpleNamespace(
        is_quantized_kv_cache=False,
        dtype=torch.float32,
        store_dtype=torch.float32,
        kv_cache_layout="nhd",
        head_dim=32,
        v_head_dim=32,
        post_capture_active=False,
        page_size=16,
    )
    PandoKVPool._refuse_what_is_not_supported(pool)
    setattr(pool, field, value)
    with pytest.raises(ValueError, match=said):
        PandoKVPool._refuse_what_is_not_supported(pool)


def test_models_that_differ_in_their_rope_alone_are_not_the_same(tmp_path):
    from pando_kv.sglang.kv_pool import model_digest_of
    from sglang.srt.server_args import ServerArgs

    def digest(name, **configuration):
        model = make_model(tmp_path / name, **configuration)
        return model_digest_of(ServerArgs(model_path=str(model), device="cpu"))

    yarn = {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 2048,
    }
    one = digest("one")
    assert one
    assert digest("the same in another folder") == one
    assert digest("rope_theta", rope_theta=500_000.0) != one
    assert digest("yarn", rope_scaling=yarn) != one
    assert digest("dtype", torch_dtype="bfloat16") != one


def test_a_pool_in_other_memory_is_refused(roomy, monkeypatch):
    from pando_kv.sglang import ADDRESS, attachment, kv_pool

    monkeypatch.setenv(ADDRESS, roomy.address)
    monkeypatch.setattr(
        kv_pool, "get_serving", lambda: SimpleNamespace(served_model_name="tiny")
    )
    monkeypatch.setattr(kv_pool, "get_server_args", lambda: None)
    monkeypatch.setattr(kv_pool, "model_digest_of", lambda _: "")
    monkeypatch.setattr(
        kv_pool, "get_parallel", lambda: SimpleNamespace(tp_rank=0, tp_size=1)
    )
    engine = SimpleNamespace(
        layer_num=LAYERS,
        head_num=LAYOUT["heads"],
        head_dim=LAYOUT["head_size"],
        dtype=torch.float32,
        page_size=16,
        size=511 * 16,
        device="cuda",
    )
    with pytest.raises(ValueError, match="memory of cpu, and the engine computes on"):
        kv_pool.PandoKVPool._attach(engine)
    attachment.session().close()
    attachment.session.cache_clear()


@pytest.mark.parametrize("text", ["-1", "600001", "nan", "soon"])
def test_a_wait_that_is_none_is_refused(text, monkeypatch):
    from pando_kv.sglang import WAIT_MS
    from pando_kv.sglang.attachment import wait

    assert wait() == 0
    monkeypatch.setenv(WAIT_MS, "1500")
    assert wait() == 1.5
    monkeypatch.setenv(WAIT_MS, text)
    with pytest.raises(ValueError, match=f"PANDO_WAIT_MS is .*{text}.*; must be"):
        wait()
