"""How a vLLM with Pando is started, and what it says when it cannot."""

import inspect
import pkgutil
from types import SimpleNamespace

import pytest
import torch
from engines.engine_process import EngineDied, closing_all
from engines.models import LAYERS, LAYOUT
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.start import prompt, start_engine, whole_blocks
from pando_kv import Client
from pando_kv._tested_versions import require_tested_version
from pando_kv.vllm import TESTED_VERSIONS
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages
from pando_kv.vllm.zero_worker import ZeroWorker
from pandod_process import Pandod

BASE = "vllm.distributed.kv_transfer.kv_connector.v1.base:KVConnectorBase_V1."
# Parameters by name, of what the connector overrides, and of the private things that the
# zero-copy mode leans on.
SIGNATURES = {
    "vllm.v1.core.block_pool:BlockPool.get_num_free_blocks": "self",
    "vllm.v1.core.block_pool:BlockPool.get_new_blocks": "self num_blocks",
    "vllm.v1.core.block_pool:BlockPool.touch": "self blocks",
    "vllm.v1.core.block_pool:BlockPool.free_blocks": "self ordered_blocks",
    "vllm.v1.core.block_pool:BlockPool.cache_full_blocks": (
        "self request blocks num_cached_blocks num_full_blocks block_size "
        "kv_cache_group_id block_mask"
    ),
    "vllm.v1.core.block_pool:BlockPool.reset_prefix_cache": "self",
    "vllm.v1.core.kv_cache_manager:KVCacheManager.get_computed_blocks": "self request",
    "vllm.v1.core.kv_cache_manager:KVCacheManager.get_blocks": "self request_id",
    "vllm.v1.core.kv_cache_manager:KVCacheManager.create_kv_cache_blocks": "self blocks",
    **{
        BASE + name: parameters
        for name, parameters in {
            "__init__": "self vllm_config role kv_cache_config",
            "get_mem_pool_context": "self",
            "register_kv_caches": "self kv_caches",
            "handle_preemptions": "self kv_connector_metadata",
            "start_load_kv": "self forward_context kwargs",
            "wait_for_layer_load": "self layer_name",
            "save_kv_layer": "self layer_name kv_layer attn_metadata kwargs",
            "wait_for_save": "self",
            "get_finished": "self finished_req_ids",
            "get_block_ids_with_load_errors": "self",
            "build_connector_worker_meta": "self",
            "bind_kv_cache_manager": "self kv_cache_manager",
            "get_num_new_matched_tokens": "self request num_computed_tokens",
            "update_state_after_alloc": "self request blocks num_external_tokens",
            "build_connector_meta": "self scheduler_output",
            "update_connector_output": "self connector_output",
            "request_finished": "self request block_ids",
            "has_pending_push_work": "self",
            "reset_cache": "self",
            "shutdown": "self",
        }.items()
    },
    (
        "vllm.distributed.kv_transfer.kv_connector.v1.base:"
        "SupportsHMA.request_finished_all_groups"
    ): "self request block_ids",
    (
        "vllm.distributed.kv_transfer.kv_connector.factory:"
        "KVConnectorFactory.register_connector"
    ): "name module_path class_name",
    "vllm.v1.worker.utils:allocate_kv_cache": (
        "kv_cache_config device layout kernel_block_sizes"
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_is_the_one_that_was_tested(name):
    signature = inspect.signature(pkgutil.resolve_name(name))
    assert " ".join(signature.parameters) == SIGNATURES[name]


def test_this_vllm_is_a_tested_one():
    import vllm

    require_tested_version("vLLM", vllm.__version__, TESTED_VERSIONS)


def test_another_version_is_refused():
    with pytest.raises(RuntimeError, match=r"vLLM 0\.32\.0, and this is vLLM 0\.33\.0"):
        require_tested_version("vLLM", "0.33.0", TESTED_VERSIONS)


def test_a_pool_by_heads_is_refused(tmp_path):
    """As SGLang's: its pages hold keys and values apart, those of vLLM together."""
    blocks = torch.zeros(8, 2, BLOCK_TOKENS, 2 * 32)
    server = Pandod(
        tmp_path, model=MODEL, pool_pages=8, **LAYOUT, page_tokens=BLOCK_TOKENS
    )
    server.start()
    with Client(server.address) as client:
        worker = CopyWorker(client, 0, StatedPages(MODEL, ""))
        with pytest.raises(ValueError, match="does not fit the pool of pandod") as said:
            worker.register({f"layer.{n}": blocks for n in range(LAYERS)}, BLOCK_TOKENS)
    assert f"--page-bytes {LAYERS * BLOCK_BYTES}" in str(said.value)
    server.close()


def test_a_pool_in_other_memory_is_refused_by_copies(roomy):
    blocks = torch.zeros(8, 2, BLOCK_TOKENS, 2 * 32, device="meta")
    with Client(roomy.address) as client:
        worker = CopyWorker(client, 0, StatedPages(MODEL, PAGE_FORMAT))
        with pytest.raises(ValueError, match="memory of cpu, and the engine computes"):
            worker.register({f"layer.{n}": blocks for n in range(LAYERS)}, BLOCK_TOKENS)


def test_a_pool_in_other_memory_is_refused_in_place(roomy):
    size = 512 * LAYERS * BLOCK_BYTES
    tensor = SimpleNamespace(
        offset=0,
        size=size,
        layers=[f"layer.{n}" for n in range(LAYERS)],
        layer_stride=512 * BLOCK_BYTES,
        block_stride=BLOCK_BYTES,
    )
    memory_of_vllm = SimpleNamespace(kv_cache_tensors=[tensor])
    with Client(roomy.address) as client:
        pages = StatedPages(MODEL, PAGE_FORMAT)
        worker = ZeroWorker(client, 0, pages, memory_of_vllm)
        with (
            worker.memory_context(),
            pytest.raises(ValueError, match="memory of cpu, and the engine computes"),
        ):
            torch.zeros(size, dtype=torch.int8, device="meta")


@pytest.fixture(scope="module")
def served(model, roomy, reference, tmp_path_factory):
    """The engine core in a process of its own, and its worker, as vLLM is served. They
    start one after the other, while the first tests that ask for it run."""
    folder = tmp_path_factory.mktemp("served")
    engine = start_engine("served", model, roomy, folder, multiprocessing=True)
    with closing_all([engine]):
        yield engine


def test_an_engine_that_does_not_fit_ends_with_a_sentence(
    model, roomy, served, tmp_path
):
    engine = start_engine(
        "inside", model, roomy, tmp_path, connector={"pando_page_format": "another"}
    )
    with closing_all([engine]), pytest.raises(EngineDied):
        engine.ready()
    assert "page_format is 'another', the pool's is 'of the tests'" in engine.log()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pando_zero_copy": "false"}, "pando_zero_copy is 'false'; must be true or"),
        ({"pando_wait_ms": "5"}, "pando_wait_ms is '5'; must be a number from 0 to"),
        ({"pando_model": "another"}, "has --model 'tiny'; this engine needs 'another'"),
        ({"pando_zero_copy": True}, "the engine has 100 blocks .*-blocks-override 512"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(model, roomy, options, said):
    with pytest.raises(ValueError, match=said):
        SchedulerAlone(
            model, roomy.address, zero_copy=True, blocks=100, options=options
        )


def test_the_name_that_is_served_is_the_model(model, tmp_path):
    server = serve_pool(tmp_path, 8, model="another")
    said = "pandod has --model 'another'; this engine needs 'tiny'"
    with pytest.raises(ValueError, match=said):
        SchedulerAlone(model, server.address, zero_copy=False, blocks=8)
    server.close()


def test_several_processes_share_a_pool(served, reference, operator):
    tokens = prompt(300, seed=2000)
    expected = reference.ask(prompts=[tokens])["outputs"]
    assert served.ask(prompts=[tokens])["outputs"] == expected
    again = served.ask(prompts=[tokens])
    assert again["cached"] == [whole_blocks(300)]
    assert again["outputs"] == expected
    served.close()
    assert operator.match_prefix(tokens).matched_tokens == whole_blocks(300)
    assert operator.stats().locks == 0
