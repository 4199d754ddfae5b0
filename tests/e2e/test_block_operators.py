"""Operators see the kinds, the holders of blocks, and why a block is missing."""

import asyncio

import pytest
from blocks import BLOCKS_ONLY, KEY_BYTES, MIB, RESERVED, STORED, keys, of, spec, store
from eventually import eventually
from pando_kv import BlockEviction, BlockFate, Client, Namespace, Operator, PandoError
from pando_kv.aio import AsyncOperator
from pandoctl import Pandoctl
from worker_process import WorkerProcess

SALT = "a-salt-that-is-not-shown"


@pytest.fixture
def pandod(start_pandod):
    return start_pandod(**BLOCKS_ONLY)


@pytest.fixture
def client(pandod):
    with Client(pandod.address, name="engine") as client:
        yield client


@pytest.fixture
def operator(pandod):
    with Operator(pandod.address) as operator:
        yield operator


@pytest.fixture
def ctl(pandod):
    return Pandoctl(pandod.address)


def test_kinds_are_listed_with_the_largest_first(client, operator, ctl):
    memory = client.attach_memory()
    tenant = Namespace("lora", SALT)
    (small, large) = client.open_kinds(
        [spec("small"), spec("large", MIB, namespace=tenant)]
    )
    store(client, memory, 1, small, keys(3))
    store(client, memory, 2, large, keys(2))
    client.acquire_blocks(1, [of(small, keys(2))])
    client.reserve_blocks(3, [of(small, keys(1, prompt=1))])
    client.lookup_blocks([of(small, keys(1, prompt=2))])

    listed = operator.kinds()
    assert listed.total == 2
    first, second = listed.items
    assert (first.kind_number, first.label) == (large.number, "kind large")
    assert (first.extra_key, first.has_cache_salt) == ("lora", True)
    assert first.memory_bytes == 2 * MIB
    assert second.identity == small.spec.identity
    states = (
        *(second.evictable_blocks, second.protected_blocks),
        *(second.reserved_blocks, second.free_blocks),
    )
    assert states == (1, 2, 1, MIB // second.block_bytes - 4)
    assert (second.hits, second.misses, second.published_blocks) == (2, 1, 3)
    assert (second.sessions, second.generation, second.is_newest) == (1, 1, True)
    assert operator.kinds(limit=1).items == [first]

    printed = ctl("kinds", "--limit", 1).out
    assert "kind large" in printed
    assert printed.endswith("1 of 2\n")
    as_json = ctl("kinds", "-o", "json")
    assert [int(kind["memory_bytes"]) for kind in as_json.json()["kinds"]] == [
        2 * MIB,
        MIB,
    ]
    assert SALT not in printed + as_json.out


def test_a_block_is_explained_from_its_reservation_to_its_eviction(
    client, operator, ctl
):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec()])
    (key,) = keys(1)

    def fate():
        return operator.explain_block(kind.number, key).fate

    def said():
        return ctl("explain-block", kind.number, key.hex()).out

    assert fate() is BlockFate.NEVER_STORED
    client.reserve_blocks(1, [of(kind, [key])])
    explained = operator.explain_block(kind.number, key)
    assert explained.fate is BlockFate.PENDING
    assert explained.client_name == "engine"
    assert "PENDING: session 1 (engine) has been writing it" in said()
    client.publish_blocks(1)
    client.acquire_blocks(2, [of(kind, [key])])
    explained = operator.explain_block(kind.number, key)
    assert (explained.fate, explained.locks) == (BlockFate.READY, 1)
    assert "READY: it is found; 1 lock, followed by 0 blocks" in said()
    client.release_blocks([2])
    for prompt in range(1, 10):
        store(client, memory, 1, kind, keys(64, prompt))
    explained = operator.explain_block(kind.number, key)
    assert explained.fate is BlockFate.EVICTED
    assert explained.evicted_for is BlockEviction.ROOM
    assert "for: another block of its kind" in said()


def test_a_block_that_takes_too_long_is_explained(start_pandod):
    pandod = start_pandod(block_write_limit="1ms", **BLOCKS_ONLY)
    with Client(pandod.address) as client, Operator(pandod.address) as operator:
        (kind,) = client.open_kinds([spec()])
        (key,) = keys(1)
        client.reserve_blocks(1, [of(kind, [key])])

        def is_overdue():
            fate = operator.explain_block(kind.number, key).fate
            return fate is BlockFate.OVERDUE

        eventually(is_overdue)
        client.reserve_blocks(2, [of(kind, [key])])
        assert operator.kinds().items[0].overdue == 1


def test_what_cannot_be_explained_says_why(client, operator, ctl):
    (kind,) = client.open_kinds([spec()])
    with pytest.raises(PandoError, match="there is no kind 99"):
        operator.explain_block(99, keys(1)[0])
    with pytest.raises(PandoError, match=f"a key of this kind has {KEY_BYTES}"):
        operator.explain_block(kind.number, b"short")
    assert "hexadecimal" in ctl("explain-block", kind.number, "xyz").err


def test_sessions_and_quarantine_tell_of_blocks(pandod, operator, ctl):
    with WorkerProcess(pandod.address, 1, "block_worker.py") as worker:
        worker.do("attach", "store", "lock", "reserve")
        (session,) = operator.sessions().items
        assert (session.locked_blocks, session.reserved_blocks) == (STORED, RESERVED)
        held = f"{STORED} locked, {RESERVED} reserved"
        assert held in ctl("sessions").out


def test_sessions_say_how_many_steps_their_calls_of_blocks_took(client, operator):
    def steps():
        (session,) = operator.sessions().items
        return session.steps

    (kind,) = client.open_kinds([spec()])
    before = steps()
    client.lookup_blocks([of(kind, keys(3))])
    assert steps() == before + 1


def test_asyncio_asks_the_same(client, pandod):
    (kind,) = client.open_kinds([spec()])

    async def ask():
        async with AsyncOperator(pandod.address) as operator:
            listed = await operator.kinds()
            explained = await operator.explain_block(kind.number, keys(1)[0])
            return listed.items[0].kind_number, explained.fate

    assert asyncio.run(ask()) == (kind.number, BlockFate.NEVER_STORED)


def test_without_block_memory_operators_are_told(start_pandod):
    pandod = start_pandod()
    with Operator(pandod.address) as operator:
        for call in (operator.kinds, lambda: operator.explain_block(1, keys(1)[0])):
            with pytest.raises(PandoError) as refused:
                call()
            assert refused.value.reason == "NO_BLOCK_MEMORY"
