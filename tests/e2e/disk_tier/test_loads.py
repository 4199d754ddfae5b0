"""Evicted pages come back from disk bit by bit, or they are a miss."""

import numpy as np
from eventually import eventually
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, WAIT_MS, Tiered, fill, wait_for


def test_an_evicted_prefix_is_loaded_bit_by_bit(tiered):
    computed = tiered.store(PROMPT, seed=1)
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == PAGES


def test_only_what_is_missing_is_loaded(tiered):
    computed = tiered.cache(PROMPT, seed=1)
    tiered.evict(5)
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == 5


def test_a_prompt_that_nobody_computed_is_a_miss_at_once(tiered):
    tiered.cache(PROMPT, seed=1)
    other = PROMPT + 1
    assert tiered.read(other)[0] == 0
    assert tiered.copied("load") == 0


def test_a_call_that_does_not_wait_loads_nothing(tiered):
    tiered.store(PROMPT, seed=1)
    with tiered.client() as client:
        assert client.match_prefix(PROMPT, lock=True).matched_tokens == 0
        assert client.match_prefix(PROMPT).matched_tokens == 0
    assert tiered.copied("load") == 0


def test_a_cap_of_the_match_is_one_of_the_load(tiered):
    tiered.store(PROMPT, seed=1)
    with tiered.client() as client:
        most = 3 * PAGE_TOKENS + 1
        match = client.match_prefix(
            PROMPT, lock=True, max_tokens=most, pending_wait=WAIT_MS / 1000
        )
        with match.lock:
            assert match.matched_tokens == 3 * PAGE_TOKENS
    assert tiered.copied("load") == 3


def test_namespaces_are_closed_worlds_on_disk_too(tiered):
    tiered.cache(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        for namespace in ({"extra_key": "lora"}, {"cache_salt": "x"}, {"bigram": True}):
            match = wait_for(worker, PROMPT, namespace=namespace).get()
            assert match.matched_tokens == 0
    assert tiered.copied("load") == 0


def test_bigram_prefixes_are_loaded(tiered):
    tokens = np.append(PROMPT, 7).astype(np.uint32)
    bigram = {"bigram": True}
    with protocol_worker(tiered.pandod.address) as worker:
        first = worker.admit(tokens, reserve_tokens=PROMPT.size, namespace=bigram).get()
        worker.call(
            "Insert",
            lock_id=first.lock_id,
            lock_action="LOCK_ACTION_UNLOCK",
            prompt_tokens=tokens.size,
            page_ids=first.reserved_page_ids,
        )
        eventually(lambda: tiered.figure("pages") == PAGES)
        tiered.await_idle()
        tiered.evict()
        match = wait_for(worker, tokens, namespace=bigram).get()
        assert match.matched_tokens == PROMPT.size


def test_many_who_want_one_prefix_load_it_once(tiered):
    tiered.store(PROMPT, seed=1)
    with (
        protocol_worker(tiered.pandod.address) as one,
        protocol_worker(tiered.pandod.address) as other,
    ):
        answers = [wait_for(worker, PROMPT) for worker in (one, other, one, other)]
        assert [a.get().matched_tokens for a in answers] == [PROMPT.size] * 4
    assert tiered.copied("load") == PAGES


def test_what_was_loaded_is_not_stored_again(tiered):
    tiered.cache(PROMPT, seed=1)
    for _ in range(3):
        tiered.evict()
        assert tiered.read()[0] == PROMPT.size
    assert tiered.copied("store") == PAGES


def test_a_prompt_of_many_chunks_comes_back_bit_by_bit(start_pandod, tmp_path):
    pages = 70
    prompt = np.arange(pages * PAGE_TOKENS, dtype=np.uint32)
    tiered = Tiered(start_pandod, tmp_path / "tier", pool_pages=1024)
    computed = tiered.cache(prompt, seed=1)
    # The first pages stay cached, so the loaded chunks follow a match.
    tiered.evict(pages - 5)
    matched, loaded = tiered.read(prompt)
    assert matched == prompt.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied("load") == pages - 5


def test_a_full_tier_makes_room_and_keeps_the_beginnings(start_pandod, tmp_path):
    # A page takes 4 KiB, and its record takes 64 bytes.
    room = 20
    tiered = Tiered(
        start_pandod, tmp_path / "tier", tier_disk_bytes=4096 + room * (4096 + 64)
    )
    assert tiered.figure("capacity_pages") == room
    first = tiered.cache(PROMPT, seed=1)
    with tiered.client() as client, client.attach_pool() as pool:
        second = PROMPT + 1000
        pages = client.allocate_pages(PAGES)
        fill(pool, client, pages, 2)
        client.insert(second, pages)
        eventually(lambda: tiered.copied("store") == 2 * PAGES)
    tiered.await_idle()
    tiered.evict(2 * PAGES)
    assert tiered.read(second)[0] == second.size
    left = room - PAGES
    matched, loaded = tiered.read()
    assert matched == left * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, first[:, :left])
