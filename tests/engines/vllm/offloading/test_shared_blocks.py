"""Real engines on two machines that share blocks in a folder."""

import pytest
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import CONNECTOR
from engines.vllm.offloading.models import make
from engines.vllm.start import prompt
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client

LENGTHS = [860, 601, 330]
NEW = 12


@pytest.mark.parametrize("name", ["llama", "gemma 3"])
def test_an_engine_finds_what_one_on_another_machine_has_computed(
    forks, tmp_path, name
):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    machines, https = [], []
    for number in range(2):
        folder = tmp_path / f"machine-{number}"
        folder.mkdir()
        https.append(free_address())
        options = {"http": https[-1], "block_tier_shared": f"file://{shared}"}
        machines.append(serve_blocks(folder, **options))

    def copied(number, direction):
        page = MetricsPage(https[number])
        labels = {"tier": "remote", "direction": direction}
        return int(page.sum("pando_block_tier_copied_blocks_total", **labels))

    def answers(engine):
        said = [engine.ask(prompts=[each], new=NEW) for each in prompts]
        outputs = [each["outputs"][0] for each in said]
        return outputs, [each["cached"][0] for each in said]

    prompts = [prompt(length, seed=7000 + length) for length in LENGTHS]
    given = {"model": str(make(name, tmp_path / "model"))}
    given |= {"enable_prefix_caching": True, "patient": True, "connector": CONNECTOR}
    first = forks.start("first", **given, pando=machines[0].address)
    expected, _ = answers(first)
    _, of_the_first = answers(first)
    published = int(MetricsPage(https[0]).sum("pando_blocks_published_total"))
    assert published > 0
    eventually(lambda: copied(0, "store") >= published)
    first.close()

    second = forks.start("second", **given, pando=machines[1].address)
    outputs, cached = answers(second)
    assert outputs == expected
    assert cached == of_the_first
    assert copied(1, "load") > 0
    second.close()
    for machine in machines:
        with Client(machine.address, name="operator") as operator:
            eventually(lambda operator=operator: nothing_is_held(operator))
            assert operator.check_invariants() == []
        machine.close()
