"""Evicted pages come back from the memory of pandod, bit by bit."""

import itertools

import numpy as np
import pytest
from eventually import eventually
from host_tiered import PAGE_BYTES, HostTiered
from metrics_page import MetricsPage
from pandod_process import PAGE_TOKENS, refused_start
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, contents, fill, stalled_tier, wait_for

OTHER = PROMPT + 1000


def test_an_evicted_prefix_is_loaded_bit_by_bit(tiered):
    computed = tiered.store(PROMPT, seed=1)
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    for direction in ("store", "load"):
        assert tiered.copied_by("host", direction) == PAGES
        assert tiered.copied_by("disk", direction) == 0
        moved = tiered.figure("copied_bytes_total", tier="host", direction=direction)
        assert moved == PAGES * PAGE_BYTES
    assert tiered.figure("capacity_pages", tier="host") == 4 * 2**20 // PAGE_BYTES
    page = MetricsPage(tiered.http)
    assert page.sum("pando_prefix_hit_tokens_total", tier="loaded") == PROMPT.size


def test_what_was_loaded_is_not_stored_again(tiered):
    tiered.cache(PROMPT, seed=1)
    for _ in range(3):
        tiered.evict()
        assert tiered.read()[0] == PROMPT.size
    assert tiered.copied_by("host", "store") == PAGES


def test_a_prompt_of_many_chunks_comes_back_bit_by_bit(start_pandod):
    pages = 70
    prompt = np.arange(pages * PAGE_TOKENS, dtype=np.uint32)
    tiered = HostTiered(start_pandod, pool_pages=1024)
    computed = tiered.cache(prompt, seed=1)
    # The first pages stay cached, so the loaded chunks follow a match.
    tiered.evict(pages - 5)
    matched, loaded = tiered.read(prompt)
    assert matched == prompt.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied_by("host", "load") == pages - 5


def test_a_full_tier_makes_room_and_keeps_the_beginnings(start_pandod):
    room = 20
    tiered = HostTiered(start_pandod, tier_host_bytes=room * PAGE_BYTES)
    first = tiered.cache(PROMPT, seed=1)
    with tiered.client() as client, client.attach_pool() as pool:
        pages = client.allocate_pages(PAGES)
        fill(pool, client, pages, 2)
        second = contents(pool, client, pages)
        client.insert(OTHER, pages)
        eventually(lambda: tiered.copied("store") == 2 * PAGES)
    assert tiered.held_pages() == room
    tiered.await_idle()
    tiered.evict(2 * PAGES)
    matched, loaded = tiered.read(OTHER)
    assert matched == OTHER.size
    np.testing.assert_array_equal(loaded, second)
    left = room - PAGES
    matched, loaded = tiered.read(PROMPT)
    assert matched == left * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, first[:, :left])


@pytest.mark.parametrize("how", [{}, {"namespace": {}}], ids=str)
def test_what_is_flushed_is_forgotten(tiered, how):
    tiered.cache(PROMPT, seed=1)
    with protocol_worker(tiered.pandod.address) as worker:
        worker.cache(list(PROMPT), namespace={"extra_key": "lora"})
        eventually(lambda: tiered.held_pages() == 2 * PAGES)
        tiered.await_idle()
        worker.call("Flush", **how)
    left = PAGES if how else 0
    eventually(lambda: tiered.held_pages() == left)
    assert tiered.read()[0] == 0
    # The tier keeps pages that are computed after the flush.
    computed = tiered.store(PROMPT, seed=2)
    np.testing.assert_array_equal(tiered.read()[1], computed)


def test_host_memory_is_asked_before_the_disk(with_disk):
    computed = with_disk.cache(PROMPT, seed=1)
    eventually(lambda: with_disk.held_in("disk") == PAGES)
    with_disk.await_idle()
    with_disk.evict()
    matched, loaded = with_disk.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert with_disk.copied_by("host", "load") == PAGES
    assert with_disk.copied_by("disk", "load") == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_new_process_has_what_is_on_disk_alone(with_disk, end):
    computed = with_disk.cache(PROMPT, seed=1)
    eventually(lambda: with_disk.held_in("disk") == PAGES)
    getattr(with_disk.pandod, end)()
    with_disk.pandod.start()
    assert (with_disk.held_in("host"), with_disk.held_in("disk")) == (0, PAGES)
    np.testing.assert_array_equal(with_disk.read()[1], computed)
    assert with_disk.copied_by("disk", "load") == PAGES
    # Pages that came from the disk stay in host memory afterwards.
    eventually(lambda: with_disk.held_in("host") == PAGES)
    with_disk.await_idle()
    with_disk.evict()
    np.testing.assert_array_equal(with_disk.read()[1], computed)
    assert with_disk.copied_by("host", "load") == PAGES
    assert with_disk.copied_by("disk", "load") == PAGES


def test_the_disk_has_what_does_not_fit_in_memory(start_pandod, tmp_path):
    room = 5
    tiered = HostTiered(
        start_pandod, tmp_path / "tier", tier_host_bytes=room * PAGE_BYTES
    )
    with tiered.client() as client, client.attach_pool() as pool:
        pages = client.allocate_pages(PAGES)
        fill(pool, client, pages, 1)
        computed = contents(pool, client, pages)
        client.insert(PROMPT, pages)
        eventually(lambda: tiered.held_in("disk") == PAGES)
        eventually(lambda: tiered.held_in("host") == room)
    tiered.await_idle()
    tiered.evict()
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert tiered.copied_by("host", "load") == room
    assert tiered.copied_by("disk", "load") == PAGES - room


def test_a_disk_that_hangs_does_not_keep_what_is_in_memory(start_pandod, tmp_path):
    options = {"tier_host_bytes": "4MiB"}
    with stalled_tier(start_pandod, tmp_path, **options) as (tiered, disk):
        disk.stall()
        with protocol_worker(tiered.pandod.address) as worker:
            worker.cache(list(PROMPT))
            held = PAGES
            eventually(lambda: tiered.figure("pages", tier="host") == held)
            # The test gives up the store to the disk, so that all pages can be evicted.
            eventually(lambda: worker.stats().locks == 1)
            [session] = [
                session.session_number
                for session in worker.call("ListSessions").sessions
                if session.client_name == "pandod-tiers"
            ]
            worker.call("ReleaseLocks", session_number=session)
            tiered.evict()
        assert tiered.read()[0] == PROMPT.size
        assert tiered.figure("copied_pages_total", tier="disk") == 0
        disk.go_on()


def test_a_flush_gives_memory_back_while_the_disk_hangs(start_pandod, tmp_path):
    room = {"tier_host_bytes": PAGES * PAGE_BYTES}
    with (
        stalled_tier(start_pandod, tmp_path, **room) as (tiered, disk),
        protocol_worker(tiered.pandod.address) as worker,
    ):

        def held_in(tier: str) -> int:
            return tiered.figure("pages", tier=tier)

        def stored_in(tier: str) -> int:
            return tiered.figure("copied_pages_total", tier=tier, direction="store")

        worker.cache(list(OTHER))
        eventually(lambda: stored_in("host") == stored_in("disk") == PAGES)
        # PROMPT takes the room of OTHER, which is then on disk only.
        worker.cache(list(PROMPT))
        eventually(lambda: stored_in("host") == stored_in("disk") == 2 * PAGES)
        tiered.await_idle()
        tiered.evict(2 * PAGES)
        disk.stall(after=1)
        waiting = wait_for(worker, OTHER)
        eventually(disk.is_reached)
        worker.call("Flush")
        eventually(lambda: held_in("host") == 0)
        others = (list(PROMPT[:PAGE_TOKENS] + 1000 * i) for i in itertools.count(2))

        def another_one_is_kept() -> bool:
            worker.cache(next(others))
            return held_in("host") > 0

        eventually(another_one_is_kept)
        disk.go_on()
        assert waiting.get().matched_tokens == 0


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("4000", "tier-host-bytes is 4000; must be at least"),
        ("4096TiB", "tier-host-bytes is 4503599627370496; pandod may use"),
    ],
)
def test_a_size_that_cannot_be_is_told_at_the_start(tmp_path, size, said):
    assert said in refused_start(tmp_path, f"--tier-host-bytes={size}")


def test_without_the_option_nothing_is_told_of_it(start_pandod, tmp_path):
    tiered = HostTiered(start_pandod, tmp_path / "tier", tier_host_bytes=None)
    page = MetricsPage(tiered.http)
    assert not [s for s in page.series if s.labels.get("tier") == "host"]
