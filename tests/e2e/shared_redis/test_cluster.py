"""A cluster whose nodes each hold a share of the pages."""

import numpy as np
import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS
from protocol_worker import protocol_worker
from redis_server import KINDS, RedisCluster
from shared_redis import Machines
from tiered import PROMPT

NODES = 3


@pytest.fixture
def cluster(request, stack, tmp_path) -> RedisCluster:
    kind = getattr(request, "param", "redis")
    cluster = RedisCluster(tmp_path / "cluster", NODES, kind)
    stack.callback(cluster.kill)
    return cluster


@pytest.fixture
def machines(cluster, stack, tmp_path) -> Machines:
    return Machines(stack, tmp_path, cluster, cluster.nodes[0].url)


@pytest.mark.parametrize("cluster", KINDS, indirect=True)
def test_pages_are_shared_by_all_nodes(machines, cluster):
    one, other = machines.start(), machines.start()
    computed = one.cache(PROMPT, seed=1)
    matched, loaded = other.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert all(node.blocks() for node in cluster.nodes)
    with protocol_worker(one.pandod.address) as worker:
        worker.call("Flush")
    eventually(lambda: one.held_pages() == 0)
    assert machines.start().read()[0] == 0
    for machine in (one, other):
        assert machine.failures("read") == machine.failures("write") == 0


def move_slot(source, target, slot: int, target_id: bytes, source_id: bytes) -> None:
    target.db.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.db.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)


def test_pages_are_found_while_and_after_slots_move(machines, cluster):
    one = machines.start()
    computed = one.cache(PROMPT, seed=1)
    other = machines.start()
    # This machine now knows the slots.
    assert other.read()[0] == PROMPT.size
    other.await_idle()
    other.evict()
    source, target = cluster.nodes[:2]
    source_id, target_id = cluster.id_of(source), cluster.id_of(target)
    slots = [
        source.db.execute_command("CLUSTER", "KEYSLOT", k) for k in source.blocks()
    ]
    for slot in slots:
        move_slot(source, target, slot, target_id, source_id)
        keys = source.db.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        source.db.execute_command(
            "MIGRATE", target.host, target.port, "", 0, 5000, "KEYS", *keys
        )
    # The move is half done: the source still has the slots and redirects callers.
    np.testing.assert_array_equal(other.read()[1], computed)
    other.await_idle()
    other.evict()
    for slot in slots:
        for node in (target, source):
            node.db.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_id)
    np.testing.assert_array_equal(other.read()[1], computed)
    assert source.blocks() == []
    assert other.failures("read") == other.failures("verify") == 0


def test_a_node_that_dies_takes_only_its_pages(machines, cluster):
    url = ",".join(node.url for node in cluster.nodes)
    one, other = machines.start(tier_shared=url), machines.start(tier_shared=url)
    computed = one.cache(PROMPT, seed=1)
    holders = cluster.holders()
    # This node holds its first page later in the prompt than any other node does.
    dead = max(cluster.nodes, key=holders.index)
    served = holders.index(dead)
    dead.kill()
    # Repeated calls are not refused, although the node stays away.
    for _ in range(5):
        matched, loaded = other.read()
        assert matched == served * PAGE_TOKENS
        np.testing.assert_array_equal(loaded, computed[:, :served])
        other.await_idle()
        other.evict(served)
    assert other.refused("load") == 0
    dead.start()
    eventually(cluster.is_whole)
    computed = one.cache(PROMPT + 1000, seed=2)
    eventually(lambda: other.read(PROMPT + 1000)[0] == PROMPT.size)
    np.testing.assert_array_equal(other.read(PROMPT + 1000)[1], computed)
