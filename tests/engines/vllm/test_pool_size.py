"""Sizes that vLLM takes from the pool, because the pool is its KV memory."""

import json

import pytest
from engines.vllm.pool import BLOCK_TOKENS, MODEL
from pandod_process import OPEN, serving
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.utils.mem_utils import MemorySnapshot
from vllm.v1.worker.utils import request_memory

GIB = 1 << 30


@pytest.fixture
def configured(model, roomy):
    """Returns a function that makes vLLM's configuration from its flags."""

    def make(*flags, **options):
        extra = {"pando_address": roomy.address} | options
        transfer = {
            "kv_connector": "PandoConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": extra,
        }
        parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
        line = ["--model", str(model), "--served-model-name", MODEL]
        line += ["--skip-tokenizer-init", "--dtype", "float32"]
        line += ["--kv-transfer-config", json.dumps(transfer), *flags]
        return EngineArgs.from_cli_args(parser.parse_args(line)).create_engine_config()

    return make


def start_on(gpu_gib, free_gib, config):
    """Does the first steps of vLLM's GPU worker; returns the bytes that it wants."""
    gpu = MemorySnapshot(
        free_memory=free_gib * GIB,
        total_memory=gpu_gib * GIB,
        device="cpu",
        auto_measure=False,
    )
    return request_memory(gpu, config.cache_config)


def test_sizes_that_are_not_given_are_those_of_the_pool(configured):
    config = configured()
    assert config.cache_config.block_size == BLOCK_TOKENS
    assert config.cache_config.num_gpu_blocks_override == 512
    assert not config.scheduler_config.async_scheduling


def test_sizes_may_be_given_as_the_pool_has_them(configured):
    flags = ["--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", "512"]
    config = configured(*flags)
    assert config.cache_config.num_gpu_blocks_override == 512


def test_an_open_pool_has_as_many_blocks_as_its_bytes_hold(
    configured, model, roomy, tmp_path
):
    with serving(tmp_path, **OPEN | {"pool_bytes": GIB}) as pandod:
        config = configured(pando_address=pandod.address)
        cache = config.cache_config
        assert (cache.block_size, cache.num_gpu_blocks_override) == (16, None)
        assert cache.kv_cache_memory_bytes == GIB
        assert start_on(80, 37, config) < 1 << 10
        larger = configured("--block-size", "64", pando_address=pandod.address)
        assert larger.cache_config.block_size == 64


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--block-size", "16"], "this engine --block-size 16: .*--block-size 32"),
        (
            ["--num-gpu-blocks-override", "100"],
            "--pool-pages 512, and this engine --num-gpu-blocks-override 100: start the "
            "engine with --num-gpu-blocks-override 512, or without",
        ),
    ],
)
def test_a_size_that_is_not_the_pools_is_refused(configured, flags, said):
    with pytest.raises(ValueError, match=said):
        configured(*flags)


def test_a_gpu_that_the_pool_and_another_engine_fill_is_no_refusal(configured):
    assert start_on(80, 37, configured()) < 1 << 10


def test_a_share_that_was_given_must_be_free(configured):
    config = configured("--gpu-memory-utilization", "0.4")
    assert start_on(80, 37, config) == 32 * GIB
    with pytest.raises(ValueError, match="less than desired GPU memory utilization"):
        start_on(80, 31, config)
