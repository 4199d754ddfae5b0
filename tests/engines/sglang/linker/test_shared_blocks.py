"""Engines on two machines that share blocks in a folder."""

import contextlib

import pytest
from engines.engine_process import closing_all
from engines.sglang.linker.conftest import serve_blocks
from engines.sglang.linker.engines import finds, nothing_is_held
from engines.sglang.start import prompt
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Operator

NEW = 12


@pytest.mark.parametrize("model", ["plain", "windows"])
def test_an_engine_finds_what_one_on_another_machine_has_computed(
    engines_of, tmp_path, model
):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    machines = []
    with contextlib.ExitStack() as stack:
        for number in range(2):
            folder = tmp_path / f"machine-{number}"
            folder.mkdir()
            http = free_address()
            machine = serve_blocks(
                folder, http=http, block_tier_shared=f"file://{shared}"
            )
            machines.append(machine)
            stack.callback(machine.close)
        make = engines_of(tmp_path)
        first = make.start("first", model, machines[0])
        second = make.start("second", model, machines[1])
        stack.enter_context(closing_all([first, second]))
        tokens = prompt(400, seed=1)
        expected = first.ask(prompts=[tokens], new=NEW)["outputs"]
        eventually(lambda: finds(first, tokens, expected))
        # The second engine does not wait for loads. pandod loads the blocks that a
        # request asks for, and a later request finds them.
        eventually(lambda: finds(second, tokens, expected))
        page = MetricsPage(http)
        labels = {"tier": "remote", "direction": "load"}
        assert page.sum("pando_block_tier_copied_blocks_total", **labels) > 0
        for machine in machines:
            with Operator(machine.address) as operator:
                eventually(lambda operator=operator: nothing_is_held(operator))
                assert operator.check_invariants() == []
        for engine in (first, second):
            engine.close()
