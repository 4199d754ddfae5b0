"""Starts of vLLM with Pando, and their refusals."""

from types import SimpleNamespace

import pytest
import torch
from engines.engine_process import EngineDied, closing_all
from engines.models import LAYERS, LAYOUT, make_model
from engines.vllm.conftest import serve_pool, start_in_pool
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.start import prompt, whole_blocks
from pando_kv import Client
from pando_kv.vllm.identity import digest_of
from pando_kv.vllm.pages.stated_pages import StatedPages, format_of
from pando_kv.vllm.pages.worker import PageWorker
from pandod_process import Pandod
from vllm.engine.arg_utils import EngineArgs


def memory_of_vllm(pages):
    tensor = SimpleNamespace(
        offset=0,
        size=pages * LAYERS * BLOCK_BYTES,
        layers=[f"layer.{n}" for n in range(LAYERS)],
        layer_stride=pages * BLOCK_BYTES,
        block_stride=BLOCK_BYTES,
    )
    return SimpleNamespace(kv_cache_tensors=[tensor])


def test_a_pool_by_heads_is_refused(tmp_path):
    """A pool by heads, as for SGLang, keeps keys and values apart; vLLM does not."""
    server = Pandod(
        tmp_path, model=MODEL, pool_pages=8, **LAYOUT, page_tokens=BLOCK_TOKENS
    )
    server.start()
    memory = memory_of_vllm(8)
    with Client(server.address) as client:
        pages = StatedPages(MODEL, "", PAGE_FORMAT)
        worker = PageWorker(client, 0, pages, memory, None)
        size = memory.kv_cache_tensors[0].size
        with worker.memory_context():
            blocks = torch.zeros(size, dtype=torch.int8, device="cpu")
        layers = blocks.view(LAYERS, 8, BLOCK_BYTES)
        caches = {f"layer.{n}": layers[n] for n in range(LAYERS)}
        with pytest.raises(ValueError, match="does not fit the pool of pandod") as said:
            worker.register(caches, BLOCK_TOKENS)
    assert f"--page-bytes {LAYERS * BLOCK_BYTES}" in str(said.value)
    server.close()


def test_a_pool_in_other_memory_is_refused(roomy):
    memory = memory_of_vllm(512)
    with Client(roomy.address) as client:
        pages = StatedPages(MODEL, "", PAGE_FORMAT)
        worker = PageWorker(client, 0, pages, memory, None)
        size = memory.kv_cache_tensors[0].size
        with (
            worker.memory_context(),
            pytest.raises(ValueError, match="memory of cpu, and the engine computes"),
        ):
            torch.zeros(size, dtype=torch.int8, device="meta")


def test_a_format_tells_element_types_and_shapes_apart():
    formats = {
        format_of(torch.zeros(shape, dtype=dtype))
        for shape in ((2, 4, 8), (2, 8, 4))
        for dtype in (torch.float32, torch.bfloat16)
    }
    assert len(formats) == 4


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float8_e4m3fn])
def test_quantized_kv_must_state_its_format(dtype):
    with pytest.raises(ValueError, match="pando_page_format"):
        format_of(torch.zeros((2, 4), dtype=dtype))


@pytest.fixture(scope="module")
def served(model, roomy, reference, tmp_path_factory):
    """Yields an engine whose core and worker are separate processes, as in production.

    The fixture does not wait for the start, so the first tests run meanwhile."""
    folder = tmp_path_factory.mktemp("served")
    engine = start_in_pool("served", model, roomy, folder, 512, multiprocessing=True)
    with closing_all([engine]):
        yield engine


def test_an_engine_that_does_not_fit_ends_with_a_sentence(
    model, roomy, served, tmp_path
):
    another = {"pando_page_format": "another"}
    engine = start_in_pool("inside", model, roomy, tmp_path, 512, another)
    with closing_all([engine]), pytest.raises(EngineDied):
        engine.ready()
    assert "page_format is 'another', the pool's is 'of the tests'" in engine.log()


def test_a_twin_of_another_rope_is_refused(roomy, served, tmp_path):
    """The twin has the name and the shape of the engine that attached first."""
    served.ready()
    twin = make_model(tmp_path / "twin", rope_theta=1e6)
    engine = start_in_pool("twin", twin, roomy, tmp_path, 512)
    with closing_all([engine]), pytest.raises(EngineDied):
        engine.ready()
    assert "the configuration of the model differs from that" in engine.log()


YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 2048,
}


def test_what_determines_kv_makes_another_digest(tmp_path):
    def digest(folder="one", configuration=None, **arguments):
        model = make_model(tmp_path / folder, **(configuration or {}))
        return digest_of(
            EngineArgs(
                model=str(model),
                skip_tokenizer_init=True,
                **{"dtype": "float32", "max_model_len": 1024} | arguments,
            ).create_engine_config()
        )

    same = [
        digest(),
        digest(folder="two"),
        digest(max_model_len=512, max_num_seqs=2, served_model_name="another"),
    ]
    others = [
        digest(configuration={"rope_theta": 1e6}),
        digest(configuration={"rope_scaling": YARN}),
        digest(hf_overrides={"rms_norm_eps": 1e-6}),
        digest(revision="7b2f"),
        digest(dtype="bfloat16"),
    ]
    assert len(set(same)) == 1
    assert len({same[0], *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pando_wait_ms": "5"}, "pando_wait_ms is '5'; must be a number from 0 to"),
        ({"pando_model": "another"}, "has --model 'tiny'; this engine needs 'another'"),
        ({}, "the engine has 100 blocks .*-blocks-override 512"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(model, roomy, options, said):
    with pytest.raises(ValueError, match=said):
        SchedulerAlone(model, roomy.address, blocks=100, options=options)


def test_the_name_that_is_served_is_the_model(model, tmp_path):
    server = serve_pool(tmp_path, 8, model="another")
    said = "pandod has --model 'another'; this engine needs 'tiny'"
    with pytest.raises(ValueError, match=said):
        SchedulerAlone(model, server.address, blocks=8)
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
