"""Settings that vLLM with Pando refuses when it starts."""

from types import SimpleNamespace

import pytest
import torch
from engines.models import LAYERS
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.scheduler_alone import SchedulerAlone
from pando_kv import Client
from pando_kv.vllm.pages.connector import _refuse_what_is_not_supported
from pando_kv.vllm.pages.stated_pages import StatedPages
from pando_kv.vllm.pages.worker import PageWorker

PAGES = 512
GROUP = object()


@pytest.mark.parametrize(
    ("part", "field", "value", "said"),
    [
        ("memory", "kv_cache_groups", [GROUP, GROUP], "2 groups of .*; blocks do: P"),
        ("parallel", "pipeline_parallel_size", 2, "--pipeline-parallel-size"),
        ("parallel", "decode_context_parallel_size", 2, "--decode-context-parallel"),
        ("parallel", "prefill_context_parallel_size", 2, "--prefill-context-parallel"),
        ("scheduling", "async_scheduling", True, "--async-scheduling"),
        ("config", "speculative_config", object(), "speculative decoding; blocks do"),
        ("model", "enable_sleep_mode", True, "--enable-sleep-mode"),
    ],
)
def test_what_does_not_go_together_is_refused(part, field, value, said):
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
    _refuse_what_is_not_supported(config, parts["memory"])
    setattr(parts[part], field, value)
    with pytest.raises(ValueError, match=said):
        _refuse_what_is_not_supported(config, parts["memory"])


def test_another_version_is_refused_by_the_connector(model, roomy, monkeypatch):
    monkeypatch.setattr("vllm.__version__", "0.34.0")
    with pytest.raises(
        RuntimeError,
        match=r"^PandoConnector was tested with vLLM 0\.31\.0, 0\.32\.0 and 0\.33\.0, "
        r"and this is vLLM 0\.34\.0; PANDO_ANY_ENGINE_VERSION=1 tries it nevertheless$",
    ):
        SchedulerAlone(model, roomy.address, blocks=64)


# The tests below check the memory that vLLM allocates for its KV.

# PageWorker needs vLLM's configuration only if an open pool gets its layout from it.
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
        yield PageWorker(client, 0, pages, memory_of_vllm(), NO_CONFIGURATION)


def allocated():
    size = memory_of_vllm().kv_cache_tensors[0].size
    return torch.zeros(size, dtype=torch.int8, device="cpu")


def layers_of(memory):
    """Returns the tensors of the layers, cut out of `memory` as vLLM does it."""
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
        PageWorker(client, 0, pages, memory_of_vllm(tensors=2), NO_CONFIGURATION)
