"""A follower of a real pandod's events knows what that pandod caches."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from event_follower import Follower, page_hashes, seed
from eventually import eventually
from load_client import load_client
from marked_prompts import CACHE_SALT as SALT
from pando_kv import Client, Namespace
from pando_kv._proto.pando.v1 import types_pb2
from pandod_process import PAGE_TOKENS


def publish(client: Client, tokens: np.ndarray, **options: object) -> None:
    pages = client.allocate_pages(tokens.size // PAGE_TOKENS)
    client.insert(tokens, pages, **options)


def prompt(first: int, pages: int) -> np.ndarray:
    return np.arange(first, first + pages * PAGE_TOKENS, dtype=np.uint32)


def cached_pages(client: Client) -> int:
    pages = client.stats().pages
    return pages.evictable + pages.protected


def test_hashes_are_those_of_the_protocol(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client, Follower(pandod.address, SALT) as follower:
        publish(client, prompt(0, 3))
        publish(client, prompt(0, 2), namespace=Namespace("lora", SALT))
        plain = page_hashes(seed(), prompt(0, 3).tolist(), PAGE_TOKENS)
        salted = page_hashes(seed("lora", SALT), prompt(0, 2).tolist(), PAGE_TOKENS)
        assert follower.wait_for_blocks(5) == {*plain, *salted}


def test_each_way_out_of_the_cache_has_its_reason(start_pandod):
    pandod = start_pandod(pool_pages=9)
    with Client(pandod.address) as client, Follower(pandod.address) as follower:
        follower.wait_for_blocks(0)
        publish(client, prompt(0, 8))
        follower.wait_for_blocks(8)
        pages = client.allocate_pages(2)
        follower.wait_for_blocks(6)
        client.evict(1)
        follower.wait_for_blocks(5)
        client.flush()
        follower.wait_for_blocks(0)
        client.free_pages(pages)
        assert follower.removed_for == [
            types_pb2.EVICTION_REASON_ALLOCATION,
            types_pb2.EVICTION_REASON_REQUEST,
            types_pb2.EVICTION_REASON_FLUSH,
        ]


def test_all_watchers_of_a_loaded_cache_know_the_same_in_the_end(start_pandod):
    pandod = start_pandod(pool_pages=48)

    def run_load(number: int) -> None:
        with load_client(pandod.address, number) as load:
            load.run(requests=150, seconds=0)

    with (
        Client(pandod.address) as client,
        Follower(pandod.address, SALT, after_sequence=0, epoch=client.epoch) as first,
        ThreadPoolExecutor() as threads,
    ):
        loads = [threads.submit(run_load, number) for number in range(3)]
        eventually(lambda: len(first.kinds) > 50)
        with Follower(pandod.address, SALT) as joined:
            for load in loads:
                load.result()
            publish(client, prompt(7, 2))
            last = page_hashes(seed(), prompt(7, 2).tolist(), PAGE_TOKENS)[-1]
            known = first.wait_for_block(last)
            assert joined.wait_for_block(last) == known
            assert len(known) == cached_pages(client)
            assert "snapshot_end" not in first.kinds
            assert joined.kinds.count("snapshot_end") == 1
            assert first.sequence == joined.sequence


def test_a_watcher_that_comes_back_gets_only_what_it_missed(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client:
        with Follower(pandod.address) as before:
            publish(client, prompt(0, 3))
            known = before.wait_for_blocks(3)
        publish(client, prompt(1000, 2))
        with Follower(
            pandod.address,
            after_sequence=before.sequence,
            epoch=before.epoch,
            blocks=known,
        ) as after:
            assert len(after.wait_for_blocks(5)) == 5
            assert after.kinds == ["stored"]


def test_a_slow_watcher_is_told_what_it_lost(start_pandod):
    pandod = start_pandod(event_history=8)
    with (
        Client(pandod.address) as client,
        Follower(pandod.address) as quick,
        Follower(pandod.address, narrow=True) as slow,
    ):
        slow.wait_for_blocks(0)
        slow.stop_reading()
        for i in range(200):
            publish(client, prompt(i * 1000, 40))
            client.flush()
        publish(client, prompt(7, 5))
        known = quick.wait_for_blocks(5)
        slow.go_on_reading()
        assert slow.wait_for_blocks(5) == known
        assert slow.lost
        assert slow.sequence == quick.sequence


def test_a_restart_is_another_epoch(start_pandod):
    pandod = start_pandod()
    with Client(pandod.address) as client, Follower(pandod.address) as before:
        publish(client, prompt(0, 3))
        known = before.wait_for_blocks(3)
    pandod.kill()
    pandod.start()
    with (
        Client(pandod.address) as client,
        Follower(
            pandod.address,
            after_sequence=before.sequence,
            epoch=before.epoch,
            blocks=known,
        ) as after,
    ):
        after.wait_for_blocks(0)
        assert after.kinds[:2] == ["lost", "cleared"]
        assert after.lost[0][0] == 1
        assert after.epoch == client.epoch != before.epoch


def test_a_request_that_is_none_is_refused(start_pandod):
    pandod = start_pandod()
    with grpc.insecure_channel(pandod.address) as channel:
        watch = channel.unary_stream("/pando.v1.Events/Watch")
        with pytest.raises(grpc.RpcError) as refusal:
            list(watch(b"\xff\xff", timeout=30))
        assert refusal.value.code() == grpc.StatusCode.INTERNAL


def test_a_server_with_watchers_stops_in_order(start_pandod):
    pandod = start_pandod()
    with Follower(pandod.address) as follower:
        follower.wait_for_blocks(0)
        assert pandod.stop() == 0
