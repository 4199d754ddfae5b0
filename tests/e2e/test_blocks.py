"""Blocks that engines with their own pool keep in the memory of the machine."""

import asyncio
import itertools

import numpy as np
import pytest
from blocks import (
    BLOCKS_ONLY,
    KEY_BYTES,
    MIB,
    assert_holds,
    bytes_at,
    content,
    keys,
    of,
    spec,
    store,
)
from pando_kv import Client, LayoutMismatchError, Namespace, PandoError, Shape
from pando_kv.aio import AsyncClient
from pando_kv.blocks import (
    FULL,
    MISSING,
    NOT_LOOKED_AT,
    PENDING,
    PLACE_BYTES,
    READY,
    are_places,
)
from worker_process import WorkerProcess


@pytest.fixture(params=["lane", "grpc"])
def transport(request):
    return request.param


@pytest.fixture
def pandod(start_pandod):
    return start_pandod(**BLOCKS_ONLY)


@pytest.fixture
def client(pandod, transport):
    with Client(pandod.address, lane=transport == "lane") as client:
        assert client.transport == transport
        yield client


def test_two_processes_share_what_either_has_stored(pandod):
    with (
        WorkerProcess(pandod.address, 1, "block_worker.py") as first,
        WorkerProcess(pandod.address, 1, "block_worker.py") as second,
    ):
        first.do("attach", "store")
        places = first.do("read")
        assert second.do("attach", "read") == places


def test_what_is_reserved_is_pending_for_others_until_it_is_published(pandod, client):
    with Client(pandod.address) as other:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        (same,) = other.find_kinds([(None, kind.spec.identity)])
        assert same == kind
        named = keys(3)
        asked = [of(kind, named)]
        assert client.lookup_blocks(asked).tolist() == [MISSING] * 3
        mine = client.reserve_blocks(5, asked)
        assert are_places(mine).all()
        assert len(set(mine.tolist())) == 3
        assert other.lookup_blocks(asked).tolist() == [PENDING] * 3
        assert other.reserve_blocks(1, asked).tolist() == [PENDING] * 3
        # A repeat of the call gets the same answer.
        assert client.reserve_blocks(5, asked).tolist() == mine.tolist()
        size = kind.spec.shard_bytes
        for key, place in zip(named, mine, strict=True):
            bytes_at(memory, place, size)[:] = content(key, size)
        client.publish_blocks(5, [0, 2])
        assert other.lookup_blocks(asked).tolist() == [mine[0], PENDING, mine[2]]
        client.discard_blocks(5)
        found = other.acquire_blocks(9, asked)
        assert found.tolist() == [mine[0], MISSING, mine[2]]
        seen = other.attach_memory()
        assert_holds(seen, kind, [named[0], named[2]], found[[0, 2]])
        assert other.reserve_blocks(2, asked).tolist()[::2] == [READY, READY]
        # Calls with the names of ended reservations and locks do nothing.
        client.publish_blocks(5)
        client.discard_blocks(5)
        client.release_blocks([5, 6])
        other.release_blocks([9])


def test_a_peek_is_no_use(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec()])
    stored = store(client, memory, 1, kind, keys(2))
    asked = [of(kind, keys(3))]
    (before,) = client.kinds().items
    assert client.lookup_blocks(asked, peek=True).tolist() == [*stored, MISSING]
    assert client.kinds().items == [before]
    with pytest.raises(PandoError, match="peek and load are both set"):
        client.lookup_blocks(asked, load=True, peek=True)


def test_with_all_nothing_is_locked_unless_everything_is_there(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec()])
    stored = store(client, memory, 1, kind, keys(2))
    asked = [of(kind, keys(3))]
    told = client.acquire_blocks(1, asked, all=True)
    assert told.tolist()[2] == MISSING
    # The name is therefore still free.
    again = client.acquire_blocks(1, [of(kind, keys(2))], all=True)
    assert again.tolist() == stored.tolist()


def test_shapes_look_at_the_keys_that_decide(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec()])
    named = keys(8)
    there = [named[i] for i in (0, 1, 3, 4, 5)]
    places = dict(zip(there, store(client, memory, 1, kind, there), strict=True))

    def found(**shape: object) -> list[int]:
        """Returns the indices of the keys that have a place."""
        answer = client.lookup_blocks([of(kind, named, **shape)])
        assert all(
            place == places.get(key)
            for key, place in zip(named, answer.tolist(), strict=True)
            if place < NOT_LOOKED_AT
        )
        return np.flatnonzero(are_places(answer)).tolist()

    assert found() == [0, 1, 3, 4, 5]
    assert found(shape=Shape.PREFIX) == [0, 1]
    assert found(shape=Shape.WINDOW, window=2) == [4, 5]
    assert found(shape=Shape.WINDOW, window=4) == [0, 1]
    assert found(shape=Shape.CHECKPOINT) == [5]


def test_a_block_of_several_shards_lies_in_one_piece(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec("sharded", shard_bytes=5000, shards=3)])
    assert kind.shard_stride == 2 * PLACE_BYTES
    (first, second) = client.reserve_blocks(1, [of(kind, keys(2))]).tolist()
    assert abs(first - second) * PLACE_BYTES >= 3 * kind.shard_stride
    for shard, place in itertools.product(range(3), (first, second)):
        bytes_at(memory, place + 2 * shard, 5000)[:] = shard + 1
    for place in (first, second):
        for shard in range(3):
            assert (bytes_at(memory, place + 2 * shard, 5000) == shard + 1).all()


def test_kinds_of_one_identity_are_one_and_must_have_the_same_sizes(client):
    (kind,) = client.open_kinds([spec()])
    assert client.open_kinds([spec()]) == [kind]
    with pytest.raises(LayoutMismatchError, match="131072.*65536|65536.*131072"):
        client.open_kinds([spec("other"), spec(shard_bytes=128 << 10)])
    # The refused call created no kind.
    assert client.find_kinds([(None, spec("other").identity)]) == [None]
    elsewhere = spec(namespace=Namespace(extra_key="tenant"))
    (apart,) = client.open_kinds([elsewhere])
    assert apart.number != kind.number
    assert apart.spec.namespace == Namespace(extra_key="tenant")


def test_a_reset_is_a_new_generation_and_takes_nothing_from_others(pandod, client):
    with Client(pandod.address) as other:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        assert other.open_kinds([spec()]) == [kind]
        stored = store(client, memory, 1, kind, keys(2))
        (fresh,) = client.reset_kinds([kind.number])
        assert fresh.generation == kind.generation + 1
        assert fresh.spec == kind.spec
        assert client.lookup_blocks([of(fresh, keys(2))]).tolist() == [MISSING] * 2
        asked = [of(kind, keys(2))]
        assert other.lookup_blocks(asked).tolist() == stored.tolist()
        # A worker that opens the kind later gets the newest generation.
        assert other.reset_kinds([kind.number]) == [fresh]
        assert other.open_kinds([spec()]) == [fresh]


def test_a_session_uses_only_kinds_that_it_has_open(pandod, client):
    (kind,) = client.open_kinds([spec()])
    with Client(pandod.address) as stranger:
        for call in (
            lambda: stranger.lookup_blocks([of(kind, keys(1))]),
            lambda: stranger.acquire_blocks(1, [of(kind, keys(1))]),
            lambda: stranger.reserve_blocks(1, [of(kind, keys(1))]),
            lambda: stranger.reset_kinds([kind.number]),
        ):
            with pytest.raises(PandoError, match=str(kind.number)) as refused:
                call()
            assert refused.value.reason == "KIND_UNKNOWN"


def test_what_is_used_least_is_evicted_and_what_is_locked_is_not(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec(shard_bytes=MIB)])
    store(client, memory, 1, kind, keys(4, prompt=1))
    locked = client.acquire_blocks(1, [of(kind, keys(4, prompt=1))], all=True)
    for prompt in range(2, 20):
        store(client, memory, prompt, kind, keys(4, prompt))
    assert_holds(memory, kind, keys(4, prompt=1), locked)
    assert are_places(client.lookup_blocks([of(kind, keys(4, prompt=19))])).all()
    assert client.lookup_blocks([of(kind, keys(4, prompt=2))]).tolist() == [MISSING] * 4
    # The memory has 16 extents, 4 of which are locked.
    much = client.reserve_blocks(100, [of(kind, keys(20, prompt=50))])
    assert np.count_nonzero(much == FULL) == 8
    client.discard_blocks(100)
    none = client.reserve_blocks(101, [of(kind, keys(20, prompt=51))], all=True)
    assert not are_places(none).any()
    client.release_blocks([1])


def test_a_batch_carries_blocks(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec()])
    asked = [of(kind, keys(3))]
    with client.batch() as batch:
        reserved = batch.reserve_blocks(1, asked)
        batch.publish_blocks(1, [0, 1])
        batch.discard_blocks(1)
        found = batch.lookup_blocks(asked)
        locked = batch.acquire_blocks(1, asked)
        released = batch.release_blocks([1])
    first, second, _ = reserved.result().tolist()
    assert found.result().tolist() == [first, second, MISSING]
    assert locked.result().tolist() == [first, second, MISSING]
    assert released.result() is None
    assert memory.bytes.size == 16 * MIB


def test_the_asyncio_client_makes_the_same_calls(pandod, transport):
    async def use() -> None:
        async with AsyncClient(pandod.address, lane=transport == "lane") as client:
            memory = await client.attach_memory()
            (kind,) = await client.open_kinds([spec()])
            assert await client.find_kinds([(None, kind.spec.identity)]) == [kind]
            asked = [of(kind, keys(2))]
            places = await client.reserve_blocks(1, asked)
            for key, place in zip(keys(2), places, strict=True):
                size = kind.spec.shard_bytes
                bytes_at(memory, place, size)[:] = content(key, size)
            await client.publish_blocks(1)
            locked = await client.acquire_blocks(2, asked, all=True)
            assert_holds(memory, kind, keys(2), locked)
            await client.release_blocks([2])
            await client.discard_blocks(1)
            assert (await client.lookup_blocks(asked)).tolist() == places.tolist()
            (fresh,) = await client.reset_kinds([kind.number])
            assert fresh.generation == 2

    asyncio.run(use())


def test_without_options_of_a_pool_there_is_none_to_attach(client):
    assert client.pool.capacity_pages == 2
    with pytest.raises(PandoError, match="no pool"):
        client.attach_pool()


def test_without_any_option_blocks_have_a_quarter_of_the_free_memory(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY | {"memory": None, "block_extent": None})
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = store(client, memory, 1, kind, keys(2))
        assert_holds(memory, kind, keys(2), places)
    [chosen] = [event for event in pandod.events() if "free_bytes" in event]
    assert chosen["bytes"] == memory.bytes.size
    assert chosen["bytes"] <= chosen["free_bytes"] / 4 < chosen["bytes"] + 16 * MIB
    assert "--memory" in chosen["msg"]


def test_without_memory_every_call_says_so(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client:
        for call in (
            client.attach_memory,
            lambda: client.open_kinds([spec()]),
            lambda: client.lookup_blocks([]),
        ):
            with pytest.raises(PandoError) as refused:
                call()
            assert refused.value.reason == "NO_BLOCK_MEMORY"


def test_a_pool_and_blocks_live_beside_each_other(start_pandod):
    pandod = start_pandod(memory=4 * MIB, block_extent=MIB)
    with Client(pandod.address) as client:
        pool = client.attach_pool()
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = store(client, memory, 1, kind, keys(2))
        tokens = list(range(client.pool.layout.page_tokens))
        client.insert(tokens, client.allocate_pages(1))
        assert client.match_prefix(tokens).matched_tokens == len(tokens)
        assert_holds(memory, kind, keys(2), places)
        pool.close()


def test_keys_may_be_any_contiguous_bytes(client):
    (kind,) = client.open_kinds([spec()])
    joined = np.frombuffer(b"".join(keys(3)), np.uint8)
    for given in (joined, bytearray(joined), memoryview(joined)):
        asked = [of(kind, keys(0))._replace(keys=given)]
        assert client.lookup_blocks(asked).tolist() == [MISSING] * 3
    assert KEY_BYTES * 3 == joined.size
