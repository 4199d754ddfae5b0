"""Events of a real pandod about prompts that enter and leave the cache."""

import asyncio
import itertools
import random
import threading

import pytest
from eventually import eventually
from pando_kv import (
    AllBlocksCleared,
    BlocksRemoved,
    BlocksStored,
    Client,
    EvictionReason,
    Namespace,
    SnapshotEnd,
    UnavailableError,
)
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS
from prefix_view import PrefixView
from prompts import admit_and_publish, prompt

SNAPSHOT = (AllBlocksCleared, SnapshotEnd)


def kinds(events):
    return tuple(type(event) for event in events)


def take(watch, count):
    return list(itertools.islice(watch, count))


def test_a_watch_begins_with_a_snapshot_and_goes_on_live(client):
    admit_and_publish(client, prompt(2))
    with client.watch_events() as watch:
        cleared, stored, end = take(watch, 3)
        assert kinds([cleared, stored, end]) == (
            AllBlocksCleared,
            BlocksStored,
            SnapshotEnd,
        )
        assert stored.tokens.tolist() == prompt(2).tolist()
        assert (len(stored.block_hashes), stored.parent_block_hash) == (2, b"")
        assert (stored.extra_key, stored.has_cache_salt) == (None, False)

        admit_and_publish(client, prompt(3))
        (more,) = take(watch, 1)
        assert more.parent_block_hash == stored.block_hashes[-1]
        assert (more.sequence, more.epoch) == (end.sequence + 1, client.epoch)

        client.evict(1)
        (removed,) = take(watch, 1)
        assert isinstance(removed, BlocksRemoved)
        assert removed.block_hashes == more.block_hashes
        assert removed.reason is EvictionReason.REQUEST


def test_the_events_of_a_namespace_name_it_but_not_its_salt(client):
    space = Namespace("lora", "secret", bigram=True)
    with client.watch_events() as watch:
        assert kinds(take(watch, 2)) == SNAPSHOT
        tokens = list(range(PAGE_TOKENS + 1))
        pages = client.allocate_pages(1)
        client.insert(tokens, pages, namespace=space)
        (stored,) = take(watch, 1)
    assert (stored.extra_key, stored.has_cache_salt) == ("lora", True)
    assert stored.bigram
    assert stored.tokens.tolist() == tokens


def test_a_watch_continues_after_the_last_event_that_was_seen(client):
    with client.watch_events() as watch:
        last = take(watch, 2)[-1]
    admit_and_publish(client, prompt(1))
    with client.watch_events(after_sequence=last.sequence, epoch=last.epoch) as watch:
        (stored,) = take(watch, 1)
    assert isinstance(stored, BlocksStored)
    assert stored.sequence == last.sequence + 1


def test_another_epoch_gets_a_snapshot_after_a_loss(client):
    with client.watch_events(after_sequence=7, epoch=client.epoch ^ 1) as watch:
        view = PrefixView()
        while not view.snapshots:
            view.take(take(watch, 1))
        assert view.losses == 1


def test_closing_a_watch_or_its_client_ends_the_iteration(pandod, client):
    for close_client in (False, True):
        with Client(pandod.address) as other:
            watch = other.watch_events()
            take(watch, 2)
            rest = []
            thread = threading.Thread(target=lambda w=watch, r=rest: r.extend(w))
            thread.start()
            (other if close_client else watch).close()
            thread.join()
            assert rest == []


def test_a_broken_watch_is_unavailable(pandod):
    with Client(pandod.address) as client, client.watch_events() as watch:
        take(watch, 2)
        pandod.kill()
        with pytest.raises(UnavailableError):
            take(watch, 1)


def test_a_replay_of_the_events_gives_what_is_cached(client):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    view = PrefixView()
    with client.watch_events() as watch:
        following = threading.Thread(target=lambda: view.take(watch))
        following.start()
        for _ in range(200):
            if rng.random() < 0.3:
                client.evict(rng.randint(1, 4))
            else:
                # The prompts have only four starts, so they share prefixes.
                start = rng.randint(0, 3) * 10_000
                tokens = prompt(rng.randint(1, 6), start)
                tokens[rng.randrange(len(tokens)) :] += rng.randint(0, 2)
                admit_and_publish(client, tokens)
        with client.watch_events() as other:
            snapshot = PrefixView()
            while not snapshot.snapshots:
                snapshot.take(take(other, 1))
        eventually(lambda: view.last.sequence == snapshot.last.sequence)
        watch.close()
        following.join()
    assert view.blocks == snapshot.blocks
    assert len(view.blocks) == client.stats().pages.evictable


def test_watching_with_asyncio(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as other:
            async with other.watch_events() as watch:
                assert (type(await anext(watch)), type(await anext(watch))) == SNAPSHOT
                admit_and_publish(client, prompt(1))
                stored = await anext(watch)
                assert stored.tokens.tolist() == prompt(1).tolist()
            with pytest.raises(StopAsyncIteration):
                await anext(watch)

            last = other.watch_events(
                after_sequence=stored.sequence, epoch=stored.epoch
            )
            reading = asyncio.create_task(anext(last))
            client.flush()
            assert isinstance(await reading, BlocksRemoved | AllBlocksCleared)

    asyncio.run(run())


def test_a_task_that_is_cancelled_while_it_watches_is_cancelled(pandod):
    async def run():
        async with (
            AsyncClient(pandod.address) as client,
            client.watch_events() as watch,
        ):
            assert (type(await anext(watch)), type(await anext(watch))) == SNAPSHOT
            waiting = asyncio.create_task(anext(watch))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(run())


def test_closing_the_asyncio_client_ends_its_watches(pandod):
    async def run():
        async with AsyncClient(pandod.address) as client:
            watch = client.watch_events()
            await anext(watch)
            await anext(watch)
            reading = asyncio.create_task(anext(watch))
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(StopAsyncIteration):
                await reading

    asyncio.run(run())
