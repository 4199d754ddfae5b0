"""How a vLLM with Pando is started, and what it says when it cannot."""

from types import SimpleNamespace

import pytest
import torch
from engines.engine_process import EngineDied, closing_all
from engines.models import LAYERS, LAYOUT, make_model
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, MODEL, PAGE_FORMAT
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.start import prompt, start_engine, whole_blocks
from pando_kv import Client
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages
from pando_kv.vllm.identity import digest_of
from pando_kv.vllm.zero_worker import ZeroWorker
from pandod_process import OPEN, Pandod
from vllm.engine.arg_utils import EngineArgs


def test_a_pool_by_heads_is_refused(tmp_path):
    """As SGLang's: its pages hold keys and values apart, those of vLLM together."""
    blocks = torch.zeros(8, 2, BLOCK_TOKENS, 2 * 32)
    server = Pandod(
        tmp_path, model=MODEL, pool_pages=8, **LAYOUT, page_tokens=BLOCK_TOKENS
    )
    server.start()
    with Client(server.address) as client:
        worker = CopyWorker(client, 0, StatedPages(MODEL, "", ""), 8)
        with pytest.raises(ValueError, match="does not fit the pool of pandod") as said:
            worker.register({f"layer.{n}": blocks for n in range(LAYERS)}, BLOCK_TOKENS)
    assert f"--page-bytes {LAYERS * BLOCK_BYTES}" in str(said.value)
    server.close()


@pytest.fixture
def open_pool(tmp_path):
    server = Pandod(tmp_path, **OPEN | {"pool_bytes": 8 << 20})
    server.start()
    with Client(server.address) as client:
        yield client
    server.close()


def test_the_first_engine_that_copies_says_the_layout_of_an_open_pool(open_pool):
    blocks = torch.zeros(8, 2, BLOCK_TOKENS, 2 * 32)
    worker = CopyWorker(open_pool, 0, StatedPages(MODEL, "", PAGE_FORMAT), 8)
    worker.register({f"layer.{n}": blocks for n in range(LAYERS)}, BLOCK_TOKENS)
    pool = open_pool.describe_pool()
    assert (pool.model, pool.layout.page_tokens) == (MODEL, BLOCK_TOKENS)
    assert (pool.page_bytes, pool.is_open) == (LAYERS * BLOCK_BYTES, False)


def test_a_pool_in_other_memory_is_refused_by_copies(roomy):
    blocks = torch.zeros(8, 2, BLOCK_TOKENS, 2 * 32, device="meta")
    with Client(roomy.address) as client:
        worker = CopyWorker(client, 0, StatedPages(MODEL, "", PAGE_FORMAT), 8)
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
        pages = StatedPages(MODEL, "", PAGE_FORMAT)
        worker = ZeroWorker(client, 0, pages, memory_of_vllm, None)
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


def test_a_twin_of_another_rope_is_refused(roomy, served, tmp_path):
    """Its name and its shape are those of the engine that attached first."""
    served.ready()
    twin = make_model(tmp_path / "twin", rope_theta=1e6)
    engine = start_engine("twin", twin, roomy, tmp_path)
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
