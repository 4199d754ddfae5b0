"""pando-movers that are missing, stopped, killed and started again at any time."""

import numpy as np
import pytest
from eventually import eventually
from moved import HOST, Moved
from pando_kv import NotLoaded, Operator
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, fill, wait_for

OTHER = PROMPT + 1000


def compute(moved: Moved, tokens: np.ndarray) -> None:
    """Caches a prompt, whether or not a mover copies it."""
    with moved.client() as client, client.attach_pool() as pool:
        match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        fill(pool, client, match.reserved_page_ids, seed=7)
        client.insert(tokens, match.reserved_page_ids, lock=match.lock, unlock=True)


def not_loaded(moved: Moved) -> NotLoaded:
    with Operator(moved.pandod.address) as operator:
        return operator.explain(PROMPT).not_loaded


def test_without_a_mover_nothing_is_stored_which_is_counted(without_mover):
    compute(without_mover, PROMPT)
    eventually(lambda: without_mover.figure("dropped_pages_total") == PAGES)
    assert without_mover.held_pages() == 0
    without_mover.evict()
    assert without_mover.read()[0] == 0


def test_a_tier_keeps_what_it_has_while_the_mover_is_gone(moved):
    computed = moved.store(PROMPT, seed=1)
    moved.mover.kill()
    eventually(lambda: not moved.has_mover())
    compute(moved, OTHER)
    assert moved.read()[0] == 0
    assert not_loaded(moved) == NotLoaded.NO_MOVER
    moved.start_mover()
    assert not_loaded(moved) == NotLoaded.NOT_ASKED
    matched, loaded = moved.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_load_whose_mover_is_killed_is_a_miss_and_gives_its_pages_back(moved):
    moved.store(PROMPT, seed=1)
    moved.mover.freeze()
    with protocol_worker(moved.pandod.address) as worker:
        before = worker.stats().pages
        call = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        moved.mover.kill()
        assert call.get().matched_tokens == 0
        eventually(lambda: worker.stats().pages.reserved == 0)
        assert worker.stats().pages.free == before.free
    moved.start_mover()
    assert moved.read()[0] == PROMPT.size


def test_a_stopped_mover_delays_no_call_and_no_eviction(moved):
    moved.store(PROMPT, seed=1)
    moved.mover.freeze()
    with moved.client() as client:
        match = client.match_prefix(PROMPT, lock=True, pending_wait=0.05)
        assert match.matched_tokens == 0
        match.lock.release()
        compute(moved, OTHER)
        # Pages that are being loaded stay reserved, because the mover may still write
        # there.
        assert client.stats().pages.reserved == PAGES
        # The store locks OTHER, so only the third prompt can be evicted.
        third = client.allocate_pages(1)
        client.insert(PROMPT[:PAGE_TOKENS] + 5000, third)
        assert client.evict(1) == 1
    moved.mover.go_on()
    moved.await_idle()
    eventually(lambda: moved.read()[0] == PROMPT.size)


def test_a_stopped_mover_does_not_keep_pandod_from_ending(moved):
    moved.store(PROMPT, seed=1)
    moved.mover.freeze()
    with protocol_worker(moved.pandod.address) as worker:
        waiting = wait_for(worker, PROMPT)
        eventually(lambda: worker.stats().pages.reserved == PAGES)
        assert not waiting.is_here()
    assert moved.pandod.stop() == 0
    moved.mover.kill()
    moved.pandod.start()


def test_a_mover_copies_for_the_next_pandod(moved):
    moved.store(PROMPT, seed=1)
    moved.pandod.kill()
    moved.pandod.start()
    eventually(moved.has_mover)
    assert moved.mover.welcomes() == 2
    compute(moved, OTHER)
    eventually(lambda: moved.held_pages() >= PAGES)


@pytest.mark.parametrize("without_mover", [HOST], indirect=True)
def test_a_mover_that_is_told_to_stop_ends_in_order(moved):
    assert moved.mover.stop() == 0
    eventually(lambda: not moved.has_mover())


def test_movers_are_killed_again_and_again_and_no_byte_is_wrong(moved):
    computed = {}
    for i in range(6):
        tokens = PROMPT + np.uint32(1000 * (i + 1))
        computed[i] = moved.store(tokens, seed=i)
        moved.mover.kill()
        moved.start_mover()
    for i, expected in computed.items():
        matched, loaded = moved.read(PROMPT + np.uint32(1000 * (i + 1)))
        assert matched == PAGES * PAGE_TOKENS
        np.testing.assert_array_equal(loaded, expected)
        moved.evict()
