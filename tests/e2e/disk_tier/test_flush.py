"""Pages that are flushed, or unlocked by an operator, do not come back from disk."""

import numpy as np
import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, stalled_tier, wait_for


@pytest.mark.parametrize(
    "how", [{}, {"namespace": {}}, {"namespace_number": 1}], ids=str
)
def test_what_is_flushed_is_forgotten_for_good(tiered, how):
    other = {"extra_key": "lora"}
    tiered.cache(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT), namespace=other)
        eventually(lambda: tiered.figure("pages") == 2 * PAGES)
        tiered.await_idle()
        worker.call("Flush", **how)
    left = PAGES if how else 0
    eventually(lambda: tiered.figure("pages") == left)
    assert tiered.read()[0] == 0
    tiered.pandod.stop()
    tiered.pandod.start()
    assert tiered.figure("pages") == left
    assert tiered.read()[0] == 0


def test_a_flush_ends_loads(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().waiting_matches == 1)
        worker.call("Flush")
        disk.go_on()
        assert waiting.get().matched_tokens == 0


def test_a_flush_takes_what_is_being_stored(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT))
        # The mover holds this lock for its store.
        eventually(lambda: worker.stats().locks == 1)
        assert worker.call("Flush").evicted_pages == PAGES
        assert worker.stats().locks == 0
        disk.go_on()
    # The tier stores prompts in turn, so it is done with the first prompt afterwards.
    tiered.cache(PROMPT + 1000, seed=2)
    assert tiered.figure("pages") == PAGES
    assert tiered.read()[0] == 0


def test_a_flush_takes_what_was_published_of_a_load(start_pandod, tmp_path):
    pages = 70
    chunk = 32
    prompt = np.arange(pages * PAGE_TOKENS, dtype=np.uint32)
    with stalled_tier(start_pandod, tmp_path, pool_pages=1024) as (tiered, disk):
        tiered.store(prompt, seed=1)
        disk.stall(after=chunk + 5)
        with protocol_worker(tiered.pandod.address) as worker:
            waiting = wait_for(worker, prompt)
            eventually(lambda: worker.stats().pages.reserved == pages - chunk)
            assert worker.call("Flush").evicted_pages == chunk
            assert waiting.get().matched_tokens == 0
            disk.go_on()
            eventually(lambda: worker.stats().pages.reserved == 0)
        assert tiered.read(prompt)[0] == 0


def release_locks_of_the_tier(worker) -> int:
    [session] = [
        session.session_number
        for session in worker.call("ListSessions").sessions
        if session.client_name == "pandod-tiers"
    ]
    return worker.call("ReleaseLocks", session_number=session).released_locks


def test_a_store_whose_lock_an_operator_released_is_thrown_away(stallable):
    tiered, disk = stallable
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT))
        eventually(lambda: worker.stats().locks == 1)
        assert release_locks_of_the_tier(worker) == 1
        disk.go_on()
    # The tier stores this prompt after the first one.
    tiered.cache(PROMPT + 1000, seed=2)
    assert tiered.figure("pages") == PAGES


def test_a_load_whose_lock_an_operator_released_is_given_back(stallable):
    tiered, disk = stallable
    tiered.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(tiered.pandod.address) as worker:
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        assert release_locks_of_the_tier(worker) == 1
        assert waiting.get().matched_tokens == 0
        disk.go_on()
        eventually(lambda: worker.stats().pages.reserved == 0)
        # The answer to the waiting call holds this lock.
        assert worker.stats().locks == 1
