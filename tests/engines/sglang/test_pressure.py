"""Two SGLang engines on a pool that is too small for them, beside a thief of pages."""

import contextlib
import signal
import threading

import pytest
from engines.engine_process import closing_all
from engines.sglang.conftest import serve_pool
from engines.sglang.start import prompt, start_engine, whole_pages
from eventually import eventually
from pando_kv import Client, PandoError

POOL_PAGES = 128
TOKENS = (POOL_PAGES - 1) * 16


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    server = serve_pool(tmp_path_factory.mktemp("small"), POOL_PAGES)
    yield server
    server.close()


@pytest.fixture(scope="module")
def engines(small, model, reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pressed")
    pair = [
        start_engine(name, model, small, folder, max_total_tokens=TOKENS)
        for name in "ab"
    ]
    with closing_all(pair):
        for engine in pair:
            engine.ready()
        yield pair


@contextlib.contextmanager
def thief(address):
    """Runs a thread that takes every free page, holds it briefly, and starts over."""
    is_over = threading.Event()

    def steal() -> None:
        with Client(address, name="thief") as client:
            while not is_over.is_set():
                with contextlib.suppress(PandoError):
                    pages = client.allocate_pages(POOL_PAGES, at_least=0)
                    is_over.wait(0.002)
                    if pages.size:
                        client.free_pages(pages)
                # The pause gives other clients a turn.
                is_over.wait(0.002)

    thread = threading.Thread(target=steal)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def loads_for(engines, seed):
    """Returns prompts for each engine that together do not fit into the pool."""
    return [
        [prompt(200 + 30 * i, seed=seed + 10 * e + i) for i in range(6)]
        for e in range(len(engines))
    ]


def step_in_turns(engines):
    """Steps the engines in turns until nothing is left to do.

    With turns, both run at the same time on a machine of any speed."""
    while True:
        seen = [engine.ask(step=4) for engine in engines]
        if not any(look["running"] or look["waiting"] for look in seen):
            assert [look["leaks"] for look in seen] == [0] * len(engines)
            return


def test_under_pressure_requests_are_retracted_and_none_is_wrong(
    engines, reference, small
):
    loads, new = loads_for(engines, seed=1000), 120
    started = [
        engine.ask(start=load, new=new)["ids"]
        for engine, load in zip(engines, loads, strict=True)
    ]
    step_in_turns(engines)
    retractions = 0
    for engine, ids, load in zip(engines, started, loads, strict=True):
        said = [engine.ask(output=rid) for rid in ids]
        expected = reference.ask(prompts=load, new=new)["outputs"]
        assert [answer["output"] for answer in said] == expected
        retractions += sum(answer["retractions"] for answer in said)
    assert retractions > 0
    with Client(small.address) as operator:
        assert operator.check_invariants() == []
        stats = operator.stats()
        assert stats.locks == 0
        assert stats.pages.reserved <= 2 * 12


def test_what_waits_gives_its_pages_to_what_runs(engines, small):
    """SGLang's own estimate refuses a prompt although Pando has pages for it."""
    engine = engines[0]
    engine.ask(start=[prompt(900, seed=2500)], new=200)
    engine.ask(step=8)
    (waiting,) = engine.ask(start=[prompt(1000, seed=2501)], new=1000)["ids"]
    assert engine.ask(step=4)["waiting"] == 1
    with Client(small.address) as operator:
        assert operator.stats().locks == 1
        engine.ask(abort=waiting)
        engine.ask(step=400)
        stats = operator.stats()
        assert stats.locks == 0
        assert stats.pages.reserved <= 2 * 12


def test_a_retraction_publishes_what_is_whole(engines, reference, small):
    engine, load, new = engines[0], [prompt(200, seed=2700 + i) for i in range(2)], 200
    ids = engine.ask(start=load, new=new)["ids"]
    engine.ask(step=40)
    with Client(small.address) as operator:
        held = operator.allocate_pages(POOL_PAGES, at_least=0)
        steps = iter(range(new))
        while not engine.ask(step=1)["waiting"]:
            next(steps)
        said = [engine.ask(output=rid)["output"] for rid in ids]
        found = [
            operator.match_prefix(tokens + more).matched_tokens
            for tokens, more in zip(load, said, strict=True)
        ]
        retracted = found.index(max(found))
        # The last token's KV is not computed yet, and the other request took a page.
        assert found[retracted] >= whole_pages(200 + len(said[retracted]) - 1) - 16
        operator.free_pages(held)
        engine.ask(step=2 * new)
        expected = reference.ask(prompts=load, new=new)["outputs"]
        assert [engine.ask(output=rid)["output"] for rid in ids] == expected
        assert operator.stats().locks == 0


def test_the_last_request_is_retracted_as_well(engines, reference, small):
    """SGLang alone aborts that request; with Pando it publishes its whole pages."""
    engine, tokens, new = engines[0], prompt(200, seed=2750), 200
    (rid,) = engine.ask(start=[tokens], new=new)["ids"]
    engine.ask(step=40)
    with Client(small.address) as operator:
        held = operator.allocate_pages(POOL_PAGES, at_least=0)
        eventually(lambda: engine.ask(step=4)["waiting"] == 1)
        assert operator.stats().locks == 0
        said = engine.ask(output=rid)["output"]
        computed = len(tokens) + len(said) - 1
        found = operator.match_prefix(tokens + said).matched_tokens
        assert found >= whole_pages(computed) - 16
        operator.free_pages(held)
    done = engine.ask(step=new)
    assert (
        engine.ask(output=rid)["output"]
        == reference.ask(prompts=[tokens], new=new)["outputs"][0]
    )
    assert done["leaks"] == 0


def test_what_has_priority_stays_longer(engines, small):
    engine = engines[0]
    kept, evicted = prompt(160, seed=2800), prompt(160, seed=2801)
    with Client(small.address) as operator:
        before = operator.set_eviction_policy("priority")
        engine.ask(prompts=[kept], new=1, priority=7)
        engine.ask(prompts=[evicted], new=1)
        operator.evict(operator.stats().pages.evictable - 10)
        assert operator.match_prefix(kept).matched_tokens == 160
        assert operator.match_prefix(evicted).matched_tokens == 0
        operator.set_eviction_policy(before)


def test_an_abort_while_waiting_leaves_nothing(engines, small):
    engine = engines[0]
    ids = engine.ask(start=[prompt(600, seed=2600 + i) for i in range(5)], new=8)["ids"]
    engine.ask(step=1)
    for request in ids:
        engine.ask(abort=request)
    engine.ask(step=8)
    with Client(small.address) as operator:
        assert operator.stats().locks == 0


def test_a_thief_of_pages_kills_nobody(engines, reference, small):
    loads = loads_for(engines, seed=2000)
    with thief(small.address):
        for engine, load in zip(engines, loads, strict=True):
            engine.send(prompts=load, new=30)
        answers = [engine.answer() for engine in engines]
    for answer, load in zip(answers, loads, strict=True):
        assert answer["outputs"] == reference.ask(prompts=load, new=30)["outputs"]
        assert answer["leaks"] == 0


def test_an_engine_that_stands_still_keeps_what_it_holds(engines, reference, small):
    """No timeout takes locks or pages from a living engine. The other engine computes
    in the rest of the pool."""
    still, other = engines
    load = [prompt(300, seed=2500 + i) for i in range(2)]
    ids = still.ask(start=load, new=30)["ids"]
    still.ask(step=4)
    with Client(small.address) as operator:
        held = operator.stats()
        still.process.send_signal(signal.SIGSTOP)
        try:
            others = [prompt(400, seed=2600 + i) for i in range(3)]
            answer = other.ask(prompts=others, new=30)
            assert answer["outputs"] == reference.ask(prompts=others, new=30)["outputs"]
            assert operator.stats().locks == held.locks > 0
        finally:
            still.process.send_signal(signal.SIGCONT)
        still.ask(step=60)
        expected = reference.ask(prompts=load, new=30)["outputs"]
        assert [still.ask(output=rid)["output"] for rid in ids] == expected
        assert operator.stats().locks == 0


def test_the_other_engine_is_untouched_by_a_death(engines, reference, small):
    """The victim dies in the middle of prefill and decode."""
    victim, other = engines
    victim.ask(start=[prompt(500, seed=3000 + i) for i in range(3)], new=50)
    victim.ask(step=6)
    victim.kill()
    load = [prompt(300, seed=3100 + i) for i in range(4)]
    answer = other.ask(prompts=load, new=40)
    assert answer["outputs"] == reference.ask(prompts=load, new=40)["outputs"]
    with Client(small.address) as operator:
        eventually(lambda: operator.stats().sessions == 2)
        stats = operator.stats()
        assert stats.locks == 0
        assert stats.pages.quarantined == 0
        assert stats.pages.reserved <= 12
        assert operator.check_invariants() == []


def test_a_pandod_that_begins_anew_stops_the_engine_with_a_sentence(engines, small):
    _, engine = engines
    small.kill()
    small.start()
    with Client(small.address, name="waits"):
        engine.send(prompts=[prompt(100, seed=4000)], new=4)
        assert engine.wait_for_end() != 0
    assert "the session with pandod is lost" in engine.log()
    assert "Restart the engine." in engine.log()
