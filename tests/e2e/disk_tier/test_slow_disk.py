"""A disk that is slow or does not answer, and its small cost to the workers."""

import socket

from eventually import eventually
from metrics_page import MetricsPage
from pandod_process import PAGE_TOKENS, POOL_PAGES
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, WAIT_MS, stalled_tier, wait_for


def test_a_disk_that_does_not_answer_blocks_no_call(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        how = {"tokens": PROMPT, "lock": True}
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().waiting_matches == 1)
        # Other callers neither wait for the load nor find the prompt.
        assert worker.call("MatchPrefix", **how).matched_tokens == 0
        impatient = worker.call("MatchPrefix", pending_wait_ms=1, **how)
        assert impatient.matched_tokens == 0
        # Another prompt is looked up, computed, and queued for its store.
        other = list(range(1000, 1000 + PAGE_TOKENS))
        admission = worker.admit(other, pending_wait_ms=WAIT_MS).get()
        assert admission.matched_tokens == 0
        worker.finish(admission, other)
        assert not waiting.is_here()
        disk.go_on()
        assert waiting.get().matched_tokens == PROMPT.size
    eventually(lambda: tiered.figure("pages") == PAGES + 1)


def test_what_waits_for_a_disk_counts_in_the_account_of_its_session(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()

    def kept():
        return MetricsPage(tiered.http).sum("pando_kept_bytes")

    # pandod keeps nothing for the session that stored the prompt.
    eventually(lambda: kept() == 0)
    with protocol_worker(tiered.pandod.address) as worker:
        before = kept()
        waiting = wait_for(worker, PROMPT)
        # pandod keeps the request, and its lookup or load.
        eventually(lambda: kept() >= before + 2 * 4 * PROMPT.size)
        assert not waiting.is_here()
        disk.go_on()
        assert waiting.get().matched_tokens == PROMPT.size
        eventually(lambda: kept() < before + 2 * 4 * PROMPT.size)
    eventually(lambda: kept() == 0)


def test_after_a_flush_a_disk_that_does_not_answer_blocks_no_call(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.call("Flush")
    assert tiered.read()[0] == 0
    assert tiered.figure("pages") == 0


def test_a_drain_does_not_wait_for_the_disk(start_pandod, tmp_path):
    with stalled_tier(start_pandod, tmp_path, drain_timeout="1h") as (tiered, disk):
        tiered.store(PROMPT, seed=1)
        disk.stall()
        with protocol_worker(tiered.pandod.address) as worker:
            waiting = wait_for(worker, PROMPT)
            eventually(lambda: worker.stats().pages.reserved == PAGES)
            assert not waiting.is_here()
            tiered.pandod.terminate()
            eventually(lambda: not listens(tiered.http))
    assert tiered.pandod.wait() == 0


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_what_is_evicted_before_a_slow_disk_has_it_is_dropped(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        # The tier is writing the first prompt and has not locked the second one yet.
        for begin in (0, 1000):
            prompt = list(range(begin, begin + PAGES * PAGE_TOKENS))
            worker.finish(worker.admit(prompt).get(), prompt)
            eventually(lambda: worker.stats().locks == 1)
        assert worker.stats().pages.protected == PAGES
        tiered.evict()
        disk.go_on()
    eventually(lambda: tiered.figure("dropped_pages_total") == PAGES)
    eventually(lambda: tiered.figure("pages") == PAGES)


def test_a_slow_disk_leaves_most_of_the_pool_to_the_workers(stallable):
    tiered, disk = stallable
    prompts = [PROMPT, PROMPT + 1000]
    for seed, prompt in enumerate(prompts):
        tiered.store(prompt, seed)
    disk.stall()
    quarter = POOL_PAGES // 4
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = [wait_for(worker, prompt) for prompt in prompts]
        eventually(lambda: worker.stats().pages.reserved == quarter)
        rest = worker.stats().pages.free
        worker.call("AllocatePages", pages=rest)
        disk.go_on()
        matched = sorted(call.get().matched_tokens for call in waiting)
        assert matched == [(quarter - PAGES) * PAGE_TOKENS, PROMPT.size]


def test_what_is_cached_of_a_prompt_counts_as_room_of_its_load(stallable):
    tiered, disk = stallable
    other = PROMPT + 1000
    tiered.store(other, seed=2)
    tiered.cache(PROMPT, seed=1)
    missing = 6
    tiered.evict(missing)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        first = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().pages.reserved == missing)
        second = wait_for(worker, other)
        left = POOL_PAGES // 4 - PAGES
        eventually(lambda: worker.stats().pages.reserved == missing + left)
        disk.go_on()
        assert first.get().matched_tokens == PROMPT.size
        assert second.get().matched_tokens == left * PAGE_TOKENS
