"""Damage to a shared folder, after which pandod gives the right page or a miss."""

import itertools
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from shared_folder import block_files
from tiered import PAGES, PROMPT, contents, fill


def flip_a_bit(path: Path, _other: Path) -> None:
    value = bytearray(path.read_bytes())
    value[-77] ^= 1
    path.write_bytes(value)


def flip_a_bit_of_the_header(path: Path, _other: Path) -> None:
    value = bytearray(path.read_bytes())
    value[10] ^= 1
    path.write_bytes(value)


def truncate(path: Path, _other: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path, _other: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path, _other: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def zero(path: Path, _other: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def put_another_one_there(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def put_a_folder_there(path: Path, _other: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").touch()


DAMAGES = [
    flip_a_bit,
    flip_a_bit_of_the_header,
    truncate,
    empty,
    lengthen,
    zero,
    put_another_one_there,
    put_a_folder_there,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_blocks_are_misses_and_counted(machines, damage):
    one, other = machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1)
    files = block_files(machines.shared)
    damage(files[4], files[7])
    matched, loaded = other.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert other.failures("verify") == 1
    assert other.refused("load") == 0
    with protocol_worker(other.pandod.address) as observer:
        stats = observer.stats()
        assert (stats.pages.reserved, stats.locks) == (0, 0)


def test_what_was_damaged_is_shared_again_once_it_is_computed(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    truncate(block_files(machines.shared)[4], machines.shared)
    assert other.read()[0] == 4 * PAGE_TOKENS
    assert other.held_pages() == PAGES - 1
    with other.client() as client, client.attach_pool() as pool:
        match = client.match_prefix(PROMPT, lock=True, reserve_tokens=PROMPT.size)
        fill(pool, client, match.reserved_page_ids, 2)
        rest = PROMPT[match.matched_tokens :]
        client.insert(rest, match.reserved_page_ids, lock=match.lock, unlock=True)
        whole = client.match_prefix(PROMPT)
        expected = contents(pool, client, whole.page_ids)[:, :5]
    eventually(lambda: other.held_pages() == PAGES)
    third = machines.start()
    matched, loaded = third.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded[:, :5], expected)


def test_a_folder_that_does_not_answer_blocks_no_call(machines):
    one = machines.start()
    other, disk = machines.start_stallable()
    computed = one.cache(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(other.pandod.address) as worker:
        impatient = worker.call(
            "MatchPrefix", tokens=PROMPT, lock=True, pending_wait_ms=1
        )
        assert impatient.matched_tokens == 0
    # Even a caller that could wait longer does not wait for the folder.
    assert [other.read()[0] for _ in range(3)] == [0, 0, 0]
    assert other.refused("load") == 1
    assert other.failures("read") > 0
    with protocol_worker(other.pandod.address) as worker:
        for i in range(1, 4):
            worker.cache(list(PROMPT + 1000 * i))
    assert other.read(PROMPT + 1000)[0] == PROMPT.size
    disk.go_on()
    eventually(lambda: other.read()[0] == PROMPT.size)
    np.testing.assert_array_equal(other.read()[1], computed)
    assert other.refused("load") == 0


def test_a_load_from_a_folder_that_stops_to_answer_is_given_back(machines):
    one = machines.start()
    other, disk = machines.start_stallable()
    one.cache(PROMPT, seed=1)
    # The disk stalls after the lookup and some reads.
    disk.stall(after=PAGES + 4)
    matched, _ = other.read()
    assert matched < PROMPT.size
    assert other.failures("read") == PAGES - matched // PAGE_TOKENS
    with protocol_worker(other.pandod.address) as worker:
        assert worker.stats().pages.reserved == 0
        assert worker.stats().locks == 0


def test_a_drain_does_not_wait_for_the_folder(machines):
    one = machines.start()
    other, disk = machines.start_stallable(drain_timeout="1h")
    one.cache(PROMPT, seed=1)
    disk.stall()
    assert other.read()[0] == 0
    with protocol_worker(other.pandod.address) as worker:
        worker.cache(list(PROMPT + 1000))
    other.pandod.terminate()
    eventually(lambda: not listens(other.http))
    disk.go_on()
    assert other.pandod.wait() == 0


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_a_folder_that_is_taken_away_costs_only_what_was_there(machines):
    one = machines.start()
    computed = one.store(PROMPT, seed=1)
    away = machines.shared.with_name("away")
    machines.shared.rename(away)
    # A file in place of the folder makes every read and write fail.
    machines.shared.touch()
    for i in range(1, 4):
        prompt = PROMPT + 1000 * i
        assert one.read(prompt)[0] == 0
        with protocol_worker(one.pandod.address) as worker:
            worker.cache(list(prompt[:PAGE_TOKENS]))
        eventually(lambda: one.failures("write") > 0)
    assert one.refused("load") == 1
    machines.shared.unlink()
    away.rename(machines.shared)
    eventually(lambda: one.read()[0] == PROMPT.size)
    np.testing.assert_array_equal(one.read()[1], computed)


def test_what_is_flushed_while_the_folder_does_not_answer_never_comes_back(machines):
    other, disk = machines.start_stallable()
    other.store(PROMPT, seed=1)
    disk.stall()
    with protocol_worker(other.pandod.address) as worker:
        worker.call("Flush")
        assert other.read()[0] == 0
        disk.go_on()
    eventually(lambda: other.held_pages() == 0)
    assert other.read()[0] == 0


def test_what_is_being_stored_when_it_is_flushed_is_erased(machines):
    other, disk = machines.start_stallable()
    # The disk stalls after pandod has asked for the blocks and written some of them.
    disk.stall(after=PAGES + 6)
    with protocol_worker(other.pandod.address) as worker:
        worker.cache(list(PROMPT))
        eventually(disk.is_reached)
        worker.call("Flush")
        disk.go_on()
        # pandod stores prompts in turn, and none before it has erased the flushed
        # blocks.
        others = (list(PROMPT + 1000 * i) for i in itertools.count(1))

        def another_one_is_stored() -> bool:
            worker.cache(next(others))
            return other.copied("store") > 0

        eventually(another_one_is_stored)
    assert other.read()[0] == 0
    assert other.refused("load") == 0


def test_a_kill_in_the_middle_of_stores_leaves_only_right_pages(machines):
    one, disk = machines.start_stallable()
    disk.stall(after=PAGES + 20)
    with one.client() as client, client.attach_pool() as pool:
        pages = client.allocate_pages(PAGES)
        fill(pool, client, pages, 1)
        computed = contents(pool, client, pages)
        client.insert(PROMPT, pages)
        eventually(disk.is_reached)
        one.pandod.kill()
    disk.go_on()
    one.pandod.start()
    matched, loaded = one.read()
    np.testing.assert_array_equal(loaded, computed[:, : matched // PAGE_TOKENS])
    assert one.failures("verify") == 0
