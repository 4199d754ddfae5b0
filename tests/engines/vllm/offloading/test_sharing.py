"""vLLM's own Scheduler over blocks. The tests check which blocks it finds, how many
calls it makes, and that it gives everything back."""

import contextlib
import itertools
import time

import numpy as np
import pytest
from engines.models import make_model
from engines.vllm.offloading.calls import counted
from engines.vllm.offloading.conftest import NO_POOL, nothing_is_held, reserve_all
from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.offloading.late_copies import do_copies_late
from engines.vllm.offloading.patience import be_patient
from engines.vllm.start import prompt
from eventually import eventually
from kept_pandod import kept
from pando_kv import Client, SessionLink
from pando_kv.errors import UnavailableError
from pando_kv.vllm.offloading import scheduler, worker

LONG = 1000.0


def test_what_one_engine_has_computed_another_one_loads(start):
    first, second, tokens = start(), start(), prompt(500, seed=1)
    assert first.ask("computed", tokens) == 0
    assert second.ask("found", tokens, new=20) == 480


def test_what_is_loaded_within_the_step_is_read_in_it(start, monkeypatch):
    """vLLM has the option since 0.33; older releases ignore it."""
    is_late = False
    do_copies_late(monkeypatch, lambda count: 0 if is_late else count)
    first, tokens = start(), prompt(500, seed=16)
    second = start(options={"sync_load_budget_bytes": 1 << 30})
    assert first.ask("computed", tokens) == 0
    is_late = True
    second.add("found", tokens, new=20)
    second.step()
    is_late = False
    second.run()
    assert second.found["found"] == 480


def test_a_prompt_that_ends_before_is_found(start):
    """The model has no windows; their blocks are stored only at the ends of prompts."""
    plain = {"windows": (None,)}
    first, second, tokens = start(**plain), start(**plain), prompt(500, seed=15)
    first.ask("computed", tokens)
    for length in (480, 330, 100, 33):
        second.forget()
        # The engine always computes at least one token.
        whole = min(length // 32 * 32, length - 1)
        assert second.ask(f"{length}", tokens[:length]) == whole


def test_chunks_of_several_blocks_are_found_in_part(start):
    chunks = {"options": {"blocks_per_chunk": 4}}
    first, second, tokens = start(**chunks), start(**chunks), prompt(500, seed=2)
    first.ask("computed", tokens)
    assert second.ask("found", tokens) == 384
    # The engine's own cache has a part of a chunk.
    third = start(**chunks)
    third.ask("half", tokens[:200])
    third.forget()
    third.ask("a block", tokens[:40])
    assert third.ask("the rest", tokens) == 384


def test_other_bytes_are_noticed(start, operator):
    first, second, tokens = start(), start(), prompt(500, seed=3)
    first.ask("computed", tokens)
    memory = operator.attach_memory().bytes
    memory ^= np.uint8(1)
    with pytest.raises(AssertionError, match="not its own"):
        second.ask("scrambled", tokens)


def test_a_salt_is_a_world_of_its_own(start):
    first, second, tokens = start(), start(), prompt(500, seed=4)
    first.ask("computed", tokens, cache_salt="one")
    assert second.ask("other", tokens, cache_salt="two") == 0
    assert second.ask("plain", tokens) == 0
    assert second.ask("same", tokens, cache_salt="one") == 480


def test_a_twin_of_another_rope_finds_nothing(start, tmp_path):
    """The twin has the same weights."""
    first, tokens = start(), prompt(500, seed=17)
    first.ask("computed", tokens)
    twin = start(model=make_model(tmp_path / "twin", rope_theta=1e6))
    assert twin.ask("other", tokens) == 0
    assert start().ask("same", tokens) == 480


def test_other_layouts_do_not_share(start):
    first, second, tokens = start(), start(windows=(None, 40)), prompt(500, seed=5)
    first.ask("computed", tokens)
    assert second.ask("other", tokens) == 0


def test_a_reset_engine_finds_nothing_and_takes_nothing(start):
    first, second, tokens = start(), start(), prompt(500, seed=6)
    first.ask("computed", tokens)
    first.reset()
    eventually(lambda: first.manager._kinds.now)
    assert first.ask("anew", tokens) == 0
    assert second.ask("found", tokens) == 480
    first.forget()
    assert first.ask("its own", tokens) == 480
    first.reset()
    assert first.ask("anew again", tokens) == 0


def test_what_was_computed_before_a_reset_is_not_stored_after_it(start):
    """vLLM offers such blocks again, although other weights may have computed them."""
    engine, tokens = start(), prompt(300, seed=8)
    engine.add("running", tokens, new=20)
    while engine.scheduler.requests["running"].num_computed_tokens <= len(tokens):
        engine.step()
    engine.reset()
    eventually(lambda: engine.manager._kinds.now)
    engine.run()
    engine.forget()
    assert engine.ask("after it", tokens) == 0


def test_a_request_costs_one_call_to_lock_and_one_to_release(start):
    first, second, tokens = start(), start(), prompt(500, seed=7)
    first.ask("computed", tokens)
    with counted(second.clients[0]) as calls:
        second.ask("found", tokens)
    assert calls.made == {"AcquireBlocks": 1, "ReleaseBlocks": 1}


def test_what_another_one_is_writing_is_waited_for(start, monkeypatch):
    is_over = []
    do_copies_late(monkeypatch, lambda count: count if is_over else 0)
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", LONG)
    first, second, tokens = start(), start(), prompt(200, seed=8)
    first.add("written", tokens)
    for _ in range(5):
        first.step()
    second.add("waits", tokens)
    begun = time.monotonic()
    with counted(second.clients[0]) as calls:
        for _ in range(200):
            assert second.step() == {}
    asked = calls.made["AcquireBlocks"]
    assert asked <= 1 + (time.monotonic() - begun) / scheduler._PENDING_PAUSE
    is_over.append(True)
    first.run()
    second.run()
    assert second.found["waits"] == 192


def test_what_is_written_for_long_is_computed(start, monkeypatch):
    is_over = []
    do_copies_late(monkeypatch, lambda count: count if is_over else 0)
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", -1.0)
    first, second, tokens = start(), start(), prompt(200, seed=9)
    first.add("written", tokens)
    for _ in range(5):
        first.step()
    second.add("computes", tokens)
    second.step()
    assert second.found["computes"] == 0
    is_over.append(True)
    first.run()
    second.run()


def test_requests_that_wait_keep_what_they_have_found(start):
    """vLLM looks up a request in each step while its blocks do not fit."""
    first, second, tokens = start(), start(blocks=28), prompt(300, seed=10)
    first.ask("computed", tokens)
    second.add("runs", prompt(200, seed=11), new=60)
    for _ in range(6):
        second.step()
    with counted(second.clients[0]) as calls:
        second.add("waits", tokens)
        for _ in range(20):
            second.step()
    assert calls.made["AcquireBlocks"] <= 2
    second.run()
    assert second.found["waits"] == 288


@pytest.mark.parametrize("when", ["waiting", "loading", "running"])
def test_an_abort_gives_back_what_was_found(when, start, operator, monkeypatch):
    is_over = []
    first, tokens = start(), prompt(500, seed=12)
    first.ask("computed", tokens)
    do_copies_late(monkeypatch, lambda count: count if is_over else 0)
    second = start()
    second.add("aborted", tokens, new=30)
    if when != "waiting":
        second.step()
    if when == "running":
        is_over.append(True)
        for _ in range(3):
            second.step()
    second.abort("aborted")
    is_over.append(True)
    second.step()
    second.run()
    assert nothing_is_held(operator)


@pytest.mark.parametrize("what", ["loads", "stores"])
def test_what_is_under_way_in_a_reset_is_given_back_after_the_flush(
    what, start, operator, monkeypatch
):
    first, tokens = start(), prompt(500, seed=13)
    if what == "loads":
        first.ask("computed", tokens)
    do_copies_late(monkeypatch, lambda count: 0)
    second = start()
    second.add("under way", tokens, new=30)
    for _ in range(4):
        second.step()
    figures = operator.stats().blocks
    assert figures.protected_blocks if what == "loads" else figures.reserved_blocks
    second.reset()
    figures = operator.stats().blocks
    assert figures.protected_blocks if what == "loads" else figures.reserved_blocks
    second.abort("under way")
    second.run()
    assert nothing_is_held(operator)


def test_memory_that_is_full_costs_nothing(start, operator, monkeypatch):
    """A block without room is not stored, and the blocks after it are not either."""
    do_copies_late(monkeypatch, lambda count: count)
    first, tokens = start(), prompt(500, seed=14)
    reservations = reserve_all(operator, first)
    assert first.ask("computed", tokens) == 0
    assert operator.stats().blocks.published_blocks == 0
    for reservation in reservations:
        operator.discard_blocks(reservation)
    first.forget()
    assert first.ask("computed", tokens) == 0
    first.forget()
    assert first.ask("found", tokens) == 480


def test_a_worker_that_pandod_does_not_hear_links_itself_again(start, monkeypatch):
    """A worker may write in blocks of the scheduler's session, so the link keeps that
    session alive as long as the worker lives."""
    links = []

    def fail_once(*given):
        if not links:
            links.append(None)
            raise UnavailableError("UNAVAILABLE", "nothing answers")
        links.append(SessionLink(*given))
        return links[-1]

    monkeypatch.setattr(worker, "SessionLink", fail_once)
    engine = start()
    seeds = itertools.count(20)

    def is_linked_after_a_request() -> bool:
        seed = next(seeds)
        engine.ask(f"request {seed}", prompt(100, seed=seed))
        return len(links) == 2

    # A request may need several transfers, and the link may exist after the first one.
    eventually(is_linked_after_a_request)
    is_linked_after_a_request()
    assert len(links) == 2


def test_what_was_stored_before_pandod_died_under_a_keeper_is_found(
    model, tmp_path, monkeypatch
):
    be_patient(monkeypatch.setattr)
    options = NO_POOL | {"memory": "64MiB", "block_extent": "1MiB"}
    tokens, others = prompt(500, seed=17), prompt(500, seed=18)
    with kept(tmp_path, **options) as server, contextlib.ExitStack() as stack:

        def start():
            engine = EngineAlone(model, server.address)
            stack.callback(engine.close)
            return engine

        first = start()
        assert first.ask("computed", tokens) == 0
        for name in ("others", "others again"):
            server.kill_server()
            server.wait_serving()
            first.forget()
            first.ask(name, others)
        second = start()
        assert second.ask("found", tokens, new=20) == 480
        with Client(server.address) as client:
            eventually(lambda: nothing_is_held(client))
            assert client.check_invariants() == []
