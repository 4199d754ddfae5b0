"""The files of a tier: the pages they keep, and the processes that may use them."""

import numpy as np
import pytest
from eventually import eventually
from no_io_uring import without_io_uring
from pandod_process import PAGE_TOKENS, refused_start
from protocol_worker import protocol_worker
from tiered import PAGES, PROMPT, Tiered, contents, fill


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_new_process_finds_what_is_on_disk(start_pandod, tmp_path, end):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    computed = tiered.cache(PROMPT, seed=1)
    getattr(tiered.pandod, end)()
    tiered.pandod.start()
    assert tiered.figure("pages") == PAGES
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_another_configuration_of_the_model_finds_nothing_on_disk(
    start_pandod, tmp_path
):
    """The model's name stays the same, but its KV differs."""
    tiered = Tiered(start_pandod, tmp_path / "tier")
    tiered.cache(PROMPT, seed=1, model_digest="rope_theta 10000")
    tiered.pandod.kill()
    tiered.pandod.start()
    assert tiered.read(model_digest="rope_theta 500000")[0] == 0
    eventually(lambda: tiered.figure("pages") == 0)
    computed = tiered.cache(PROMPT, seed=2, model_digest="rope_theta 500000")
    tiered.pandod.kill()
    tiered.pandod.start()
    matched, loaded = tiered.read(model_digest="rope_theta 500000")
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_what_no_worker_stated_the_configuration_of_is_not_found_by_one_that_does(
    start_pandod, tmp_path
):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    tiered.cache(PROMPT, seed=1)
    tiered.pandod.kill()
    tiered.pandod.start()
    assert tiered.read()[0] == PROMPT.size
    tiered.pandod.kill()
    tiered.pandod.start()
    assert tiered.read(model_digest="rope_theta 10000")[0] == 0


def test_what_a_ring_stored_plain_calls_load_where_a_sandbox_wants_them(
    start_pandod, tmp_path
):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    computed = tiered.cache(PROMPT, seed=1)
    tiered.pandod.stop()
    told = "the disk tier makes plain calls instead of io_uring"
    assert told not in [event["msg"] for event in tiered.pandod.events()]
    tiered.pandod.start(**without_io_uring(tmp_path, {}))
    [event] = [e for e in tiered.pandod.events() if e["msg"] == told]
    assert "Operation not permitted" in event["error"]
    matched, loaded = tiered.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_kill_in_the_middle_of_stores_leaves_only_right_pages(stallable):
    tiered, disk = stallable
    prompts = [PROMPT + 1000 * i for i in range(4)]
    # Each page takes three writes: it erases a record, writes a block, and writes a
    # record. The disk therefore stalls after one prompt and a part of another.
    disk.stall(after=PAGES * 3 + 14)
    computed = []
    with tiered.client() as client, client.attach_pool() as pool:
        for seed, prompt in enumerate(prompts):
            pages = client.allocate_pages(PAGES)
            fill(pool, client, pages, seed)
            computed.append(contents(pool, client, pages))
            client.insert(prompt, pages)
        eventually(disk.is_reached)
        tiered.pandod.kill()
    disk.go_on()
    tiered.pandod.start()
    assert 0 < tiered.figure("pages") < 2 * PAGES
    for prompt, expected in zip(prompts, computed, strict=True):
        matched, loaded = tiered.read(prompt)
        pages = matched // PAGE_TOKENS
        np.testing.assert_array_equal(loaded, expected[:, :pages])
    assert tiered.failures("verify") == 0


def test_flipped_bits_on_disk_are_a_miss(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    computed = tiered.cache(PROMPT, seed=1)
    [segment] = tiered.folder.glob("segment-*")
    stored = np.memmap(segment, dtype=np.uint8, mode="r+")
    # Pages lie one after the other in the file.
    stored[4 * 4096 + 77] ^= 1
    stored.flush()
    tiered.evict()
    matched, loaded = tiered.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert tiered.failures("verify") == 1
    with protocol_worker(tiered.pandod.address) as observer:
        stats = observer.stats()
        assert (stats.pages.reserved, stats.locks) == (0, 0)


def test_pages_of_another_model_are_not_found(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier", model="one")
    tiered.cache(PROMPT, seed=1)
    tiered.pandod.stop()
    other = Tiered(start_pandod, tmp_path / "tier", model="two")
    assert other.figure("pages") == 0
    assert other.read()[0] == 0


def test_a_folder_serves_one_pandod(start_pandod, tmp_path):
    tiered = Tiered(start_pandod, tmp_path / "tier")
    second = tmp_path / "second"
    second.mkdir()
    said = refused_start(
        second,
        f"--tier-disk={tiered.folder}",
        "--tier-disk-bytes=1GiB",
        "--model=m",
        "--pool-pages=8",
    )
    assert "which another pandod uses" in said


def test_nobody_else_may_read_the_files(tiered):
    for path in tiered.folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert tiered.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o722, 0o770], ids=oct)
def test_a_folder_where_others_may_write_is_refused(tmp_path, mode):
    folder = tmp_path / "tier"
    folder.mkdir()
    folder.chmod(mode)
    said = refused_start(
        tmp_path,
        f"--tier-disk={folder}",
        "--tier-disk-bytes=1GiB",
        "--model=m",
        "--pool-pages=8",
    )
    assert f"tier-disk is '{folder}', whose mode is 0{mode:o}" in said
    assert list(folder.iterdir()) == []


def test_options_that_need_others_are_refused(tmp_path):
    assert "tier-disk is given, which needs tier-disk-bytes" in refused_start(
        tmp_path, f"--tier-disk={tmp_path}/tier"
    )
    assert "tier-disk-bytes is given, which needs tier-disk" in refused_start(
        tmp_path, "--tier-disk-bytes=1GiB"
    )
    assert "which needs model" in refused_start(
        tmp_path, f"--tier-disk={tmp_path}/tier", "--tier-disk-bytes=1GiB"
    )


def test_a_disk_without_room_is_told_at_the_start(tmp_path):
    said = refused_start(
        tmp_path,
        f"--tier-disk={tmp_path}/tier",
        "--tier-disk-bytes=4096TiB",
        "--model=m",
        "--pool-pages=8",
    )
    assert "tier-disk-bytes is 4503599627370496; the file system of" in said
    assert list((tmp_path / "tier").glob("segment-*")) == []
