"""SGLang on a pandod with a disk tier, whose disk the tests stall."""

import os
import signal

import pytest
from engines.engine_process import closing_all
from engines.models import LAYOUT
from engines.sglang.start import prompt, start_engine, whole_pages
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pandod_process import Pandod
from stalled_disk import StalledDisk

PAGES = 256  # a quarter of them may be loaded at once
NEW = 8
BEFORE_A_CALL_ENDS = 20  # seconds; a call without the limit of a step takes 30


@pytest.fixture(scope="module")
def http():
    return free_address()


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    return StalledDisk(tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="module")
def pandod(tmp_path_factory, http, disk):
    folder = tmp_path_factory.mktemp("tiered")
    server = Pandod(
        folder,
        pool_pages=PAGES,
        model="tiny",
        http=http,
        tier_disk=folder / "tier",
        tier_disk_bytes="256MiB",
        **LAYOUT,
    )
    server.start(**disk.environment)
    yield server
    disk.go_on()
    server.close()


@pytest.fixture(scope="module")
def engine(pandod, reference, model, tmp_path_factory):
    started = start_engine(
        "waits",
        model,
        pandod,
        tmp_path_factory.mktemp("engines"),
        environment={"PANDO_WAIT_MS": "60000"},
        max_total_tokens=(PAGES - 1) * 16,
    )
    with closing_all([started]):
        yield started


@pytest.fixture(scope="module")
def operator(pandod):
    with Client(pandod.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []


@pytest.fixture
def put_on_disk_alone(engine, operator, http):
    """Returns a function that computes a prompt, evicts it once the disk has it, and
    returns the tokens."""

    def put(tokens):
        stored = MetricsPage(http).sum("pando_tier_pages")
        answer = engine.ask(prompts=[tokens], new=NEW)
        assert answer["cached"] == [0]
        whole = len(tokens) // 16
        eventually(lambda: MetricsPage(http).sum("pando_tier_pages") >= stored + whole)
        eventually(lambda: operator.stats().locks == 0)
        operator.evict(PAGES)
        assert operator.stats().pages.evictable == 0
        return answer["outputs"]

    return put


def hit_tokens(http, **labels):
    return MetricsPage(http).sum("pando_prefix_hit_tokens_total", **labels)


def test_a_prompt_that_was_evicted_is_loaded_from_disk(
    engine, operator, http, reference, put_on_disk_alone
):
    tokens = prompt(740, seed=9000)
    computed = put_on_disk_alone(tokens)
    loaded = engine.ask(prompts=[tokens], new=NEW)
    assert loaded["cached"] == [736]
    assert loaded["outputs"] == computed == reference.ask(prompts=[tokens])["outputs"]
    assert hit_tokens(http, tier="loaded") == 736
    found = engine.ask(prompts=[tokens], new=NEW)
    assert (found["cached"], found["outputs"]) == ([736], computed)
    # The wait does not count as a hit; only the match after it does.
    assert hit_tokens(http) == 2 * 736
    eventually(lambda: operator.stats().locks == 0)


def test_loads_of_a_queue_do_not_evict_each_other(engine, operator, put_on_disk_alone):
    """Together the prompts are twice as large as the pool."""
    prompts = [prompt(1000, seed=9050 + i) for i in range(8)]
    for tokens in prompts:
        put_on_disk_alone(tokens)
    loaded = engine.ask(prompts=prompts, new=NEW)
    assert sum(loaded["cached"]) >= 0.8 * 8 * whole_pages(1000)
    eventually(lambda: operator.stats().locks == 0)


def test_who_waits_for_the_disk_keeps_its_place_and_holds_up_nobody(
    engine, disk, put_on_disk_alone, reference
):
    waits, other = prompt(500, seed=9001), prompt(90, seed=9002)
    expected = put_on_disk_alone(waits)
    disk.stall()
    first, second = engine.ask(start=[waits, other], new=NEW)["ids"]
    eventually(lambda: len(engine.ask(step=1) and said(engine, second)) == NEW)
    assert engine.ask(look=True)["waiting"] == 1
    disk.go_on()
    eventually(lambda: len(engine.ask(step=1) and said(engine, first)) == NEW)
    assert [said(engine, first)] == expected
    assert [said(engine, second)] == reference.ask(prompts=[other])["outputs"]


def said(engine, request):
    return engine.ask(output=request)["output"]


def test_who_is_aborted_while_it_waits_leaves_nothing(
    engine, disk, operator, put_on_disk_alone
):
    tokens = prompt(400, seed=9004)
    put_on_disk_alone(tokens)
    disk.stall()
    (request,) = engine.ask(start=[tokens], new=NEW)["ids"]
    assert engine.ask(step=1)["waiting"] == 1
    engine.ask(abort=request)
    assert engine.ask(step=1)["waiting"] == 0
    disk.go_on()
    eventually(lambda: operator.stats().waiting_matches == 0)
    eventually(lambda: operator.stats().locks == 0)


def test_what_is_not_on_disk_is_one_call_more(engine):
    tokens = prompt(300, seed=9005)
    before = engine.ask(look=True)["calls"]
    engine.ask(prompts=[tokens], new=NEW)
    again = engine.ask(prompts=[tokens], new=NEW)
    assert again["cached"] == [whole_pages(300)]
    made = {name: n - before.get(name, 0) for name, n in again["calls"].items()}
    assert made["MatchPrefix"] == 4


def test_a_pandod_that_hangs_kills_nobody(engine, pandod, disk, put_on_disk_alone):
    """A request that waits for the tier does not stop the scheduler."""
    tokens = prompt(400, seed=9006)
    expected = put_on_disk_alone(tokens)
    # A process runs on for a moment after SIGSTOP, so the disk is stalled first.
    disk.stall()
    (request,) = engine.ask(start=[tokens], new=NEW)["ids"]
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        engine.send(step=1)
        assert engine.answer(BEFORE_A_CALL_ENDS)["waiting"] == 1
    finally:
        os.kill(pandod.pid, signal.SIGCONT)
        disk.go_on()
    eventually(lambda: len(engine.ask(step=1) and said(engine, request)) == NEW)
    assert [said(engine, request)] == expected


def test_who_waits_when_pandod_begins_anew_stops_with_a_sentence(
    engine, pandod, disk, put_on_disk_alone
):
    tokens = prompt(400, seed=9007)
    put_on_disk_alone(tokens)
    disk.stall()
    engine.ask(start=[tokens], new=NEW)
    assert engine.ask(step=1)["waiting"] == 1
    pandod.kill()
    disk.go_on()
    pandod.start(**disk.environment)
    with Client(pandod.address, name="waits"):
        engine.send(step=100_000)
        assert engine.wait_for_end() != 0
    assert "the session with pandod is lost" in engine.log()
