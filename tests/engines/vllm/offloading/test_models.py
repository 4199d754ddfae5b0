"""Real engines over one memory. With blocks that another engine has computed, each
returns the same tokens as alone."""

from pathlib import Path

import numpy as np
import pytest
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import CONNECTOR
from engines.vllm.offloading.models import ARGUMENTS, MODELS, make
from engines.vllm.start import prompt
from eventually import eventually
from pando_kv import Client

LENGTHS = [860, 601, 330, 97]
NEW = 12
LATENT = "deepseek mla"
HAS_AMX = "amx_tile" in Path("/proc/cpuinfo").read_text()


def one_by_one(engine, prompts):
    said = [engine.ask(prompts=[each], new=NEW) for each in prompts]
    outputs = [each["outputs"][0] for each in said]
    return outputs, [each["cached"][0] for each in said]


@pytest.mark.parametrize("name", MODELS)
def test_engines_say_the_same_with_what_another_one_has_computed(name, forks, tmp_path):
    if name == LATENT and not HAS_AMX:
        pytest.skip("vLLM caches no latent attention on a CPU without AMX")
    model, given = make(name, tmp_path / "model"), ARGUMENTS.get(name, {})
    given = given | {"model": str(model), "enable_prefix_caching": True}
    server = serve_blocks(tmp_path, "128MiB")
    prompts = [prompt(length, seed=4000 + length) for length in LENGTHS]
    # These prompts begin as the ones above, but end differently.
    others = [each[: len(each) * 2 // 3] + prompt(60, seed=1) for each in prompts]

    alone = forks.start("alone", **given)
    computed, _ = one_by_one(alone, prompts)
    expected, of_its_own = one_by_one(alone, prompts)
    of_others, _ = one_by_one(alone, others)
    alone.close()
    assert len({tuple(output) for output in computed}) == len(prompts)

    shared = given | {"patient": True, "pando": server.address, "connector": CONNECTOR}
    first = forks.start("first", **shared)
    assert one_by_one(first, prompts) == (computed, [0] * len(prompts))
    second = forks.start("second", **shared)
    found, cached = one_by_one(second, prompts)
    print(name, "cached", cached, "of its own cache", of_its_own)
    assert found == expected
    assert cached == of_its_own
    outputs, cached = one_by_one(second, others)
    assert outputs == of_others
    # vLLM stores only the windows and states that the ends of prompts need.
    if name.startswith(("llama", "deepseek")):
        assert min(cached[:3]) > 0
    second.close()

    with Client(server.address, name="operator") as operator:
        eventually(lambda: nothing_is_held(operator))
        memory = operator.attach_memory().bytes
        memory ^= np.random.default_rng(1).integers(0, 64, memory.size, np.uint8)
        third = forks.start("third", **shared)
        scrambled, cached = one_by_one(third, prompts)
        third.close()
        assert min(cached) > 0
        assert all(
            ours != theirs for ours, theirs in zip(scrambled, expected, strict=True)
        )
        first.close()
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []
    server.close()


@pytest.mark.skipif(HAS_AMX, reason="vLLM caches latent attention on a CPU with AMX")
def test_latent_attention_is_refused_where_vllm_caches_no_prefix_of_it(forks, tmp_path):
    server = serve_blocks(tmp_path)
    with pytest.raises(AssertionError, match="does not support latent attention"):
        forks.start(
            "latent",
            model=str(make(LATENT, tmp_path / "model")),
            enable_prefix_caching=True,
            pando=server.address,
            connector=CONNECTOR,
        )
    server.close()
