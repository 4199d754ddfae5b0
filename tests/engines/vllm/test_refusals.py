"""vLLM with Pando refuses some settings when it starts."""

from types import SimpleNamespace

import pytest
import torch
from engines.models import LAYERS
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.scheduler_alone import SchedulerAlone
from pando_kv import Client
from pando_kv.vllm.connector import _refuse_what_is_not_supported
from pando_kv.vllm.copy_worker import StatedPages
from pando_kv.vllm.zero_worker import ZeroWorker
from vllm.config import VllmConfig
from vllm.v1.kv_cache_interface import KVCacheConfig

PAGES = 512
GROUP = object()


@pytest.mark.parametrize(
    ("part", "field", "value", "said", "is_zero_copy_alone"),
    [
        (
            "memory",
            "kv_cache_groups",
            [GROUP, GROUP],
            "2 groups of .*; blocks do: Pando",
            False,
        ),
        ("parallel", "pipeline_parallel_size", 2, "--pipeline-parallel-size", False),
        (
            "parallel",
            "decode_context_parallel_size",
            2,
            "--decode-context-parallel-size",
            False,
        ),
        (
            "parallel",
            "prefill_context_parallel_size",
            2,
            "--prefill-context-parallel-size",
            False,
        ),
        ("scheduling", "async_scheduling", True, "--async-scheduling", True),
        (
            "config",
            "speculative_config",
            object(),
            "speculative decoding .*; blocks do",
            True,
        ),
        ("model", "enable_sleep_mode", True, "--enable-sleep-mode", True),
    ],
)
def test_what_does_not_go_together_is_refused(
    part, field, value, said, is_zero_copy_alone
):
    parts = {
        "parallel": SimpleNamespace(
            pipeline_parallel_size=1,
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
        ),
        "scheduling": SimpleNamespace(async_scheduling=False),
        "model": SimpleNamespace(enable_sleep_mode=False),
        "memory": SimpleNamespace(kv_cache_groups=[GROUP]),
    }
    config = parts["config"] = SimpleNamespace(
        parallel_config=parts["parallel"],
        scheduler_config=parts["scheduling"],
        model_config=parts["model"],
        speculative_config=None,
    )
    for is_zero_copy in (True, False):
        _refuse_what_is_not_supported(config, parts["memory"], is_zero_copy)
    setattr(parts[part], field, value)
    with pytest.raises(ValueError, match=said):
        _refuse_what_is_not_supported(config, parts["memory"], is_zero_copy=True)
    if is_zero_copy_alone:
        _refuse_what_is_not_supported(config, parts["memory"], is_zero_copy=False)
    else:
        with pytest.raises(ValueError, match=said):
            _refuse_what_is_not_supported(config, parts["memory"], is_zero_copy=False)


@pytest.mark.parametrize("is_second", [True, False], ids=["second", "first"])
def test_copies_beside_the_second_model_runner_are_refused_where_it_writes_zeros(
    model, roomy, monkeypatch, is_second
):
    """Where vLLM says that it does, which is so with states."""
    monkeypatch.setattr(KVCacheConfig, "needs_kv_cache_zeroing", True)
    monkeypatch.setattr(VllmConfig, "use_v2_model_runner", is_second)
    # There is no Triton here, without which vLLM refuses it.
    monkeypatch.setattr(VllmConfig, "_validate_v2_model_runner", lambda _: None)
    beside = {"pando_async_copies": True}
    given = {"zero_copy": False, "blocks": 64, "options": beside}
    if not is_second:
        SchedulerAlone(model, roomy.address, **given).close()
        return
    with pytest.raises(
        ValueError,
        match="^pando_async_copies of PandoConnector does not support a model with "
        "states, or with KV of several precisions, under vLLM's second model runner, "
        ".*; VLLM_USE_V2_MODEL_RUNNER=0 chooses the first$",
    ):
        SchedulerAlone(model, roomy.address, **given)
    # Among the steps a copy is over before the next one writes.
    SchedulerAlone(model, roomy.address, **given | {"options": {}}).close()
    monkeypatch.setattr(KVCacheConfig, "needs_kv_cache_zeroing", False)
    SchedulerAlone(model, roomy.address, **given).close()


def test_another_version_is_refused_by_the_connector(model, roomy, monkeypatch):
    monkeypatch.setattr("vllm.__version__", "0.34.0")
    with pytest.raises(
        RuntimeError,
        match=r"^PandoConnector was tested with vLLM 0\.31\.0, 0\.32\.0 and 0\.33\.0, "
        r"and this is vLLM 0\.34\.0; PANDO_ANY_ENGINE_VERSION=1 tries it nevertheless$",
    ):
        SchedulerAlone(model, roomy.address, zero_copy=False, blocks=64)


@pytest.mark.parametrize(
    ("zero_copy", "value", "said"),
    [
        (False, "true", "pando_async_copies is 'true'; must be true or false"),
        (True, True, "pando_async_copies together with pando_zero_copy"),
    ],
)
def test_copies_of_their_own_stream_are_for_copies(
    model, roomy, zero_copy, value, said
):
    options = {"pando_async_copies": value}
    with pytest.raises(ValueError, match=said):
        SchedulerAlone(
            model, roomy.address, zero_copy=zero_copy, blocks=64, options=options
        )


# The seams of the zero-copy mode.

# vLLM's is read where an open pool needs a layout that is not stated.
NO_CONFIGURATION = None


def memory_of_vllm(tensors=1):
    tensor = SimpleNamespace(
        offset=0,
        size=PAGES * LAYERS * BLOCK_BYTES,
        layers=[f"layer.{n}" for n in range(LAYERS)],
        layer_stride=PAGES * BLOCK_BYTES,
        block_stride=BLOCK_BYTES,
    )
    return SimpleNamespace(kv_cache_tensors=[tensor] * tensors)


@pytest.fixture
def worker(roomy):
    with Client(roomy.address) as client:
        pages = StatedPages(MODEL, "", PAGE_FORMAT)
        yield ZeroWorker(client, 0, pages, memory_of_vllm(), NO_CONFIGURATION)


def allocated():
    size = memory_of_vllm().kv_cache_tensors[0].size
    return torch.zeros(size, dtype=torch.int8, device="cpu")


def layers_of(memory):
    """The tensors of layers, cut out of one memory as vLLM does it."""
    by_layer = memory.view(LAYERS, PAGES, BLOCK_BYTES)
    return {f"layer.{n}": by_layer[n] for n in range(LAYERS)}


def test_memory_that_is_the_pool_is_taken(worker):
    with worker.memory_context():
        memory = allocated()
    worker.register(layers_of(memory), BLOCK_TOKENS)


@pytest.mark.parametrize("calls", [0, 2])
def test_memory_that_is_not_allocated_in_one_call_is_refused(worker, calls):
    with worker.memory_context():
        for _ in range(calls):
            allocated()
    with pytest.raises(RuntimeError, match=f"in {calls} calls .* it needs 1"):
        worker.register(layers_of(allocated()), BLOCK_TOKENS)


def test_a_layer_that_is_not_in_its_place_is_refused(worker):
    with worker.memory_context():
        memory = allocated()
    layers = layers_of(memory)
    layers["layer.1"], layers["layer.2"] = layers["layer.2"], layers["layer.1"]
    with pytest.raises(RuntimeError, match=r"layer 'layer\.1' is not in its place"):
        worker.register(layers, BLOCK_TOKENS)


def test_memory_of_several_tensors_is_refused(roomy):
    pages = StatedPages(MODEL, "", PAGE_FORMAT)
    with (
        Client(roomy.address) as client,
        pytest.raises(ValueError, match="one KV cache tensor .* this model has 2"),
    ):
        ZeroWorker(client, 0, pages, memory_of_vllm(tensors=2), NO_CONFIGURATION)
