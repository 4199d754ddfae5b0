"""Damage to a shared store, after which pandod gives the right page or a miss."""

import numpy as np
import pytest
from eventually import eventually
from lying_server import lying_server
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from shared_redis import Machines
from tiered import PAGES, PROMPT, contents, fill


def flip_a_bit(db, key, _other) -> None:
    value = bytearray(db.get(key))
    value[-77] ^= 1
    db.set(key, bytes(value))


def flip_a_bit_of_the_header(db, key, _other) -> None:
    value = bytearray(db.get(key))
    value[10] ^= 1
    db.set(key, bytes(value))


def truncate(db, key, _other) -> None:
    db.set(key, db.get(key)[:-1])


def empty(db, key, _other) -> None:
    db.set(key, b"")


def lengthen(db, key, _other) -> None:
    db.append(key, b"x")


def zero(db, key, _other) -> None:
    db.set(key, bytes(db.strlen(key)))


def put_another_one_there(db, key, other) -> None:
    db.copy(other, key, replace=True)


def put_a_list_there(db, key, _other) -> None:
    db.delete(key)
    db.rpush(key, "a", "list")


DAMAGES = [
    flip_a_bit,
    flip_a_bit_of_the_header,
    truncate,
    empty,
    lengthen,
    zero,
    put_another_one_there,
    put_a_list_there,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_blocks_are_misses_and_counted(machines, damage):
    one, other = machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1)
    keys = machines.server.blocks()
    damage(machines.server.db, keys[4], keys[7])
    matched, loaded = other.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert other.failures("verify") == 1
    assert other.refused("load") == 0
    # pandod deleted the damaged block, so that it can be stored anew.
    assert keys[4] not in machines.server.blocks()
    with protocol_worker(other.pandod.address) as observer:
        stats = observer.stats()
        assert (stats.pages.reserved, stats.locks) == (0, 0)


def test_a_block_that_is_much_too_long_costs_its_neighbours_one_load(machines):
    one, other = machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1)
    keys = machines.server.blocks()
    machines.server.db.append(keys[4], bytes(1 << 20))
    matched, loaded = other.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert other.failures("verify") == 1
    assert other.failures("read") > 0
    assert keys[4] not in machines.server.blocks()


def test_what_was_damaged_is_shared_again_once_it_is_computed(machines):
    one, other = machines.start(), machines.start()
    one.cache(PROMPT, seed=1)
    truncate(machines.server.db, machines.server.blocks()[4], None)
    assert other.read()[0] == 4 * PAGE_TOKENS
    with other.client() as client, client.attach_pool() as pool:
        match = client.match_prefix(PROMPT, lock=True, reserve_tokens=PROMPT.size)
        fill(pool, client, match.reserved_page_ids, 2)
        rest = PROMPT[match.matched_tokens :]
        client.insert(rest, match.reserved_page_ids, lock=match.lock, unlock=True)
        whole = client.match_prefix(PROMPT)
        expected = contents(pool, client, whole.page_ids)[:, :5]
    eventually(lambda: other.held_pages() == PAGES)
    matched, loaded = machines.start().read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded[:, :5], expected)


def test_a_server_that_does_not_answer_blocks_no_call(machines):
    one, other = machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1)
    machines.server.stall()
    with protocol_worker(other.pandod.address) as worker:
        impatient = worker.call(
            "MatchPrefix", tokens=PROMPT, lock=True, pending_wait_ms=1
        )
        assert impatient.matched_tokens == 0
    # Even a caller that could wait longer does not wait for the server.
    assert [other.read()[0] for _ in range(3)] == [0, 0, 0]
    assert other.refused("load") == 1
    assert other.failures("read") > 0
    with protocol_worker(other.pandod.address) as worker:
        worker.cache(list(PROMPT + 1000))
    assert other.read(PROMPT + 1000)[0] == PROMPT.size
    machines.server.go_on()
    eventually(lambda: other.read()[0] == PROMPT.size)
    np.testing.assert_array_equal(other.read()[1], computed)
    assert other.refused("load") == 0


def test_a_server_that_dies_costs_only_what_was_there(machines):
    one = machines.start()
    one.store(PROMPT, seed=1)
    machines.server.kill()
    for i in range(1, 4):
        prompt = PROMPT + 1000 * i
        assert one.read(prompt)[0] == 0
        with protocol_worker(one.pandod.address) as worker:
            worker.cache(list(prompt[:PAGE_TOKENS]))
        eventually(lambda: one.failures("write") > 0)
    assert one.refused("load") == 1
    # The restarted server is empty.
    machines.server.start()
    other = machines.start()
    computed = other.cache(PROMPT, seed=2)
    eventually(lambda: one.read()[0] == PROMPT.size)
    np.testing.assert_array_equal(one.read()[1], computed)


def test_a_server_that_restarts_between_two_calls_fails_none(machines):
    one = machines.start()
    one.store(PROMPT, seed=1)
    machines.server.kill()
    machines.server.start()
    computed = one.cache(PROMPT + 1000, seed=2)
    np.testing.assert_array_equal(machines.start().read(PROMPT + 1000)[1], computed)
    assert one.failures("write") == one.failures("read") == 0


def test_a_full_server_stores_nothing_and_gives_what_it_has(start_server, machines_of):
    machines = machines_of(start_server())
    one = machines.start()
    computed = one.cache(PROMPT, seed=1)
    db = machines.server.db
    db.config_set("maxmemory-policy", "noeviction")
    db.config_set("maxmemory", 1 << 20)
    with protocol_worker(one.pandod.address) as worker:
        worker.cache(list(PROMPT + 1000))
        eventually(lambda: one.failures("write") == PAGES)
    np.testing.assert_array_equal(machines.start().read()[1], computed)
    assert one.held_pages() == PAGES
    db.config_set("maxmemory", 0)
    other = machines.start()
    other.cache(PROMPT + 2000, seed=2)
    assert other.failures("write") == 0


def test_a_server_without_room_evicts_the_ends_of_prompts(start_server, machines_of):
    machines = machines_of(
        start_server(maxmemory_policy="volatile-ttl", maxmemory_samples=64)
    )
    computed = machines.start().cache(PROMPT, seed=1)
    db, keys = machines.server.db, machines.server.blocks()
    db.config_set("maxmemory", db.info("memory")["used_memory"] - PAGE_TOKENS)
    eventually(lambda: len(machines.server.blocks()) < PAGES)
    db.config_set("maxmemory", 0)
    kept = machines.server.blocks()
    assert kept == keys[: len(kept)]
    matched, loaded = machines.start().read()
    assert matched == len(kept) * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, : len(kept)])


LIES = {
    "nothing that is known": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an endless line": b"+" + b"x" * 100_000,
    "an endless text": b"$9223372036854775807\r\n" + b"x" * 100_000,
    "an endless list": b"*1000000000\r\n" + b":1\r\n" * 100_000,
    "lists in lists": b"*1\r\n" * 10_000,
    "yes": b":1\r\n" * 100,
    "fine": b"+OK\r\n" * 100,
    "an error": b"-ERR no\r\n" * 100,
    "a wrong slot": b"-MOVED 1 127.0.0.1:1\r\n" * 100,
    "too many slots": b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n" * 10,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_costs_only_what_it_has(lie, stack, tmp_path):
    url = stack.enter_context(lying_server(LIES[lie]))
    one = Machines(stack, tmp_path, None, url).start()
    assert [one.read()[0] for _ in range(2)] == [0, 0]
    assert one.failures("read") > 0
    with protocol_worker(one.pandod.address) as worker:
        worker.cache(list(PROMPT))
        eventually(lambda: worker.stats().locks == 0)
    assert one.read()[0] == PROMPT.size


def test_what_is_flushed_while_the_server_does_not_answer_never_comes_back(machines):
    one = machines.start()
    one.store(PROMPT, seed=1)
    machines.server.stall()
    with protocol_worker(one.pandod.address) as worker:
        worker.call("Flush")
        assert one.read()[0] == 0
    machines.server.go_on()
    eventually(lambda: one.held_pages() == 0)
    assert one.read()[0] == 0


def test_what_was_on_its_way_to_a_stopped_server_does_not_come_after_a_flush(
    start_server, machines_of
):
    machines = machines_of(start_server())
    one = machines.start()
    one.store(PROMPT, seed=1)
    machines.server.stall()
    with protocol_worker(one.pandod.address) as worker:
        worker.cache(list(PROMPT + 1000))
        eventually(lambda: one.failures("write") > 0)
        worker.call("Flush")
    machines.server.go_on()
    eventually(lambda: one.held_pages() == 0)
    one.pandod.terminate()
    assert one.pandod.wait() == 0
    eventually(lambda: len(machines.server.db.client_list()) == 1)
    assert machines.server.blocks() == []


def test_a_drain_does_not_wait_for_the_server(machines):
    one = machines.start(drain_timeout="1h")
    one.store(PROMPT, seed=1)
    machines.server.stall()
    assert one.read()[0] == 0
    one.pandod.terminate()
    assert one.pandod.wait() == 0
    machines.server.go_on()
