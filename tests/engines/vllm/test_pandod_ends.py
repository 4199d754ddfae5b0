"""vLLM with requests in flight, and a pandod that drains or is killed."""

import pytest
from engines.engine_process import closing_all
from engines.lost_pool import stops_without_a_wrong_token
from engines.vllm.conftest import serve_pool, start_in_place
from engines.vllm.start import prompt, start_engine
from eventually import eventually
from pando_kv import Client

PAGES = 96
IN_FLIGHT = pytest.mark.parametrize(
    ("tokens", "steps"), [(900, 2), (300, 8)], ids=["in prefill", "in decode"]
)


@pytest.fixture
def pandod(tmp_path):
    server = serve_pool(tmp_path, PAGES)
    yield server
    server.close()


@pytest.fixture
def in_place(pandod, model, tmp_path):
    engine = start_in_place("zero", model, pandod, tmp_path, PAGES)
    with closing_all([engine]):
        yield engine


@pytest.fixture(scope="module")
def of_copies(tmp_path_factory):
    server = serve_pool(tmp_path_factory.mktemp("of copies"), PAGES)
    yield server
    server.close()


@pytest.fixture(scope="module")
def copying(of_copies, model, tmp_path_factory):
    engine = start_engine("copy", model, of_copies, tmp_path_factory.mktemp("copies"))
    with closing_all([engine]):
        yield engine
        engine.close()


@IN_FLIGHT
def test_a_pandod_that_is_killed_costs_a_copying_engine_no_token(
    copying, of_copies, reference, tokens, steps
):
    load, new = [prompt(tokens, seed=7200 + steps)], 40
    # Its pages are loaded, too, when it runs again.
    copying.ask(prompts=[load[0][:200]], new=1)
    (request,) = copying.ask(start=load, new=new)["ids"]
    copying.ask(step=steps)
    of_copies.kill()
    copying.ask(step=new + 8)
    assert [copying.ask(output=request)["output"]] == (
        reference.ask(prompts=load, new=new)["outputs"]
    )
    of_copies.start()
    eventually(lambda: copying.ask(prompts=load, new=1)["cached"] != [0])


def test_a_copying_engine_saves_what_runs_while_pandod_drains(
    copying, of_copies, reference
):
    load, later, new = prompt(300, seed=7300), prompt(100, seed=7301), 40
    (running,) = copying.ask(start=[load], new=new)["ids"]
    copying.ask(step=4)
    with Client(of_copies.address, name="operator") as operator:
        operator.drain()
        (begun,) = copying.ask(start=[later], new=new)["ids"]
        copying.ask(step=new + 8)
        for request, tokens in ((running, load), (begun, later)):
            assert [copying.ask(output=request)["output"]] == (
                reference.ask(prompts=[tokens], new=new)["outputs"]
            )
        assert operator.match_prefix(load).matched_tokens == 288
        assert operator.match_prefix(later).matched_tokens == 0
        assert operator.stats().locks == 0


@IN_FLIGHT
def test_a_pandod_that_is_killed_costs_an_engine_in_place_and_no_wrong_token(
    in_place, pandod, reference, tokens, steps
):
    load, new = [prompt(tokens, seed=7200 + steps)], 40
    (request,) = in_place.ask(start=load, new=new)["ids"]
    in_place.ask(step=steps)
    pandod.kill()
    pandod.start()
    with Client(pandod.address, name="waits"):
        (expected,) = reference.ask(prompts=load, new=new)["outputs"]
        stops_without_a_wrong_token(in_place, request, expected)


def test_what_runs_in_place_while_pandod_drains_comes_to_its_end(
    in_place, pandod, reference
):
    """It needs more blocks than the engine has by then."""
    load, new = [prompt(200, seed=7400 + i) for i in range(4)], 150
    running = in_place.ask(start=load, new=new)["ids"]
    in_place.ask(step=8)
    with Client(pandod.address, name="operator") as operator:
        operator.drain()
        later = prompt(100, seed=7500)
        running += in_place.ask(start=[later], new=new)["ids"]
        in_place.ask(step=2 * new)
        assert [in_place.ask(output=rid)["output"] for rid in running] == [
            reference.ask(prompts=[each], new=new)["outputs"][0]
            for each in (*load, later)
        ]
        assert operator.match_prefix(later).matched_tokens == 0
        assert operator.stats().locks == 0
