"""Pages that one pandod computed and others load, bit by bit."""

import numpy as np
import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS, refused_start
from protocol_worker import protocol_worker
from shared_folder import block_files
from tiered import PAGES, PROMPT, wait_for

ORDERS = ["layer_first", "page_first"]


@pytest.mark.parametrize("one_order", ORDERS)
@pytest.mark.parametrize("other_order", ORDERS)
def test_what_one_computed_another_one_loads(machines, one_order, other_order):
    one = machines.start(layout_order=one_order)
    other = machines.start(layout_order=other_order)
    computed = one.cache(PROMPT, seed=1)
    matched, loaded = other.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert other.copied("load") == PAGES
    with protocol_worker(other.pandod.address) as observer:
        assert observer.violations() == []


def test_configurations_of_a_model_share_nothing_with_each_other(machines):
    one, twin, same = machines.start(), machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1, model_digest="rope_theta 10000")
    assert twin.read(model_digest="rope_theta 500000")[0] == 0
    others = twin.cache(PROMPT, seed=2, model_digest="rope_theta 500000")
    assert not np.array_equal(others, computed)
    matched, loaded = same.read(model_digest="rope_theta 10000")
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_prompt_of_many_chunks_comes_bit_by_bit(machines):
    prompt = np.arange(70 * PAGE_TOKENS, dtype=np.uint32)
    one = machines.start(pool_pages=1024)
    other = machines.start(pool_pages=1024)
    computed = one.cache(prompt, seed=1)
    # The first pages stay cached, so the loaded chunks follow a match.
    matched, loaded = other.read(prompt[: 5 * PAGE_TOKENS])
    assert matched == 5 * PAGE_TOKENS
    matched, loaded = other.read(prompt)
    assert matched == prompt.size
    np.testing.assert_array_equal(loaded, computed)
    assert other.copied("load") == 70


def test_what_was_evicted_comes_back(machines):
    one = machines.start()
    computed = one.store(PROMPT, seed=1)
    matched, loaded = one.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_new_process_finds_what_was_shared(machines):
    one = machines.start()
    computed = one.cache(PROMPT, seed=1)
    one.pandod.kill()
    one.pandod.start()
    matched, loaded = one.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)


def test_a_conversation_goes_on_on_another_machine(machines):
    one, other = machines.start(pool_pages=256), machines.start(pool_pages=256)
    longer = np.arange(2 * PROMPT.size, dtype=np.uint32)
    one.cache(PROMPT, seed=1)
    front = other.read()[1]
    with other.client() as client, client.attach_pool():
        match = client.match_prefix(longer, lock=True, reserve_tokens=longer.size)
        assert match.matched_tokens == PROMPT.size
        rest = longer[match.matched_tokens :]
        client.insert(rest, match.reserved_page_ids, lock=match.lock, unlock=True)
    eventually(lambda: one.held_pages() == 2 * PAGES)
    matched, loaded = one.read(longer)
    assert matched == longer.size
    np.testing.assert_array_equal(loaded[:, :PAGES], front)
    # pandod does not write blocks again that are in the folder already.
    assert other.copied("store") == PAGES


def test_what_was_loaded_is_not_stored_again(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    for _ in range(2):
        assert other.read()[0] == PROMPT.size
        other.await_idle()
        other.evict()
    # pandod stores prompts in turn, so it is done with the first prompt afterwards.
    other.cache(PROMPT + 1000, seed=2)
    assert other.copied("store") == PAGES


@pytest.mark.parametrize("how", [{}, {"namespace": {}}], ids=str)
def test_what_one_flushes_no_machine_finds(machines, how):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    with protocol_worker(one.pandod.address) as worker:
        worker.cache(list(PROMPT), namespace={"extra_key": "lora"})
        eventually(lambda: one.held_pages() == 2 * PAGES)
        one.await_idle()
        worker.call("Flush", **how)
    left = PAGES if how else 0
    eventually(lambda: len(list(machines.shared.glob("*"))) == (1 if left else 0))
    assert one.held_pages() == left
    assert other.read()[0] == 0
    assert one.read()[0] == 0
    # Pages that are computed after the flush are shared again.
    computed = one.cache(PROMPT, seed=2)
    np.testing.assert_array_equal(other.read()[1], computed)


def test_what_a_flush_has_left_is_deleted_by_the_next_process(machines):
    left = machines.shared / "erased-0123456789abcdef" / "00"
    left.mkdir(parents=True)
    (left / "0011").touch()
    one = machines.start()
    eventually(lambda: not left.parent.exists())
    computed = one.cache(PROMPT, seed=1)
    np.testing.assert_array_equal(machines.start().read()[1], computed)


def test_namespaces_and_models_are_closed_worlds(machines):
    one = machines.start()
    one.cache(PROMPT, seed=1)
    another = machines.start(model="another-model")
    assert another.read()[0] == 0
    with protocol_worker(machines.start().pandod.address) as worker:
        for namespace in ({"extra_key": "lora"}, {"cache_salt": "x"}, {"bigram": True}):
            match = wait_for(worker, PROMPT, namespace=namespace).get()
            assert match.matched_tokens == 0


def test_what_the_disk_has_is_not_loaded_from_the_folder(machines, tmp_path):
    with_disk = {"tier_disk": tmp_path / "tier", "tier_disk_bytes": "4MiB"}
    one, other = machines.start(), machines.start(**with_disk)
    computed = one.cache(PROMPT, seed=1)
    assert other.read()[0] == PROMPT.size
    assert other.figure("copied_pages_total", tier="remote", direction="load") == PAGES
    # The pages are on the local disk from now on.
    eventually(lambda: other.figure("pages") == PAGES)
    other.await_idle()
    other.evict()
    np.testing.assert_array_equal(other.read()[1], computed)
    assert other.figure("copied_pages_total", tier="disk", direction="load") == PAGES
    # A block that is damaged on the local disk comes from the folder again.
    [segment] = (tmp_path / "tier").glob("segment-*")
    stored = np.memmap(segment, dtype=np.uint8, mode="r+")
    stored[4 * 4096 + 77] ^= 1
    stored.flush()
    other.await_idle()
    other.evict()
    matched, loaded = other.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert other.failures("verify") == 1


def test_nobody_else_may_read_the_files(machines):
    one = machines.start()
    one.cache(PROMPT, seed=1)
    for path in machines.shared.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_the_ends_of_prompts_are_older_than_their_beginnings(machines):
    one = machines.start()
    one.cache(PROMPT, seed=1)
    one.await_idle()
    for last in (PAGES, PAGES - 3):
        reader = machines.start()
        assert reader.read()[0] == last * PAGE_TOKENS
        # A running pandod might store the removed blocks again.
        reader.pandod.stop()
        # The oldest blocks end a prompt, so removing them by age leaves a usable
        # prefix.
        for path in block_files(machines.shared)[-3:]:
            path.unlink()


@pytest.mark.parametrize(
    ("mode", "said"),
    [(None, "find the folder"), (0o722, "whose mode is 0722"), (0o770, "0770")],
    ids=str,
)
def test_a_folder_that_may_not_be_shared_is_refused(tmp_path, mode, said):
    folder = tmp_path / "shared"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    assert said in refused_start(
        tmp_path, f"--tier-shared=file://{folder}", "--model=m", "--pool-pages=8"
    )


def test_a_folder_without_a_model_is_refused(tmp_path):
    assert "which needs model" in refused_start(
        tmp_path, f"--tier-shared=file://{tmp_path}"
    )
