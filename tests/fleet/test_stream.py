"""The events that a pandod publishes, as a subscriber sees them."""

import random
import struct

import pytest
import zmq
from event_follower import page_hashes, seed
from eventually import eventually
from fleet.prompts_of_documents import branch, document
from fleet.subscriber import STORED_FIELDS, Subscriber, replay
from pando_kv import Namespace
from pandod_process import PAGE_TOKENS, refused_start
from process_memory import MEBIBYTE, memory_of

SALTED = Namespace(cache_salt="a salt")
BIGRAM = Namespace(bigram=True)


def cached_pages(machine) -> int:
    pages = machine.client.stats().pages
    return pages.evictable + pages.protected


def ids_of(tokens: list[int], namespace: str | None = None) -> list[int]:
    """Returns the block ids that docs/protocol.md and docs/fleet.md define."""
    hashes = page_hashes(seed(namespace), tokens, PAGE_TOKENS)
    return [int.from_bytes(page[:8], "big") for page in hashes]


@pytest.mark.parametrize("form", ["map", "array"])
def test_a_subscriber_knows_the_blocks_by_their_hashes(start_machine, form):
    machine = start_machine(kv_events_form=form)
    tokens = list(range(100, 100 + 3 * PAGE_TOKENS))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put([*tokens, 1])
        subscriber.wait_for_blocks(3)
        assert list(subscriber.blocks) == ids_of(tokens)
        event = next(iter(subscriber.blocks.values()))
        assert tuple(event) == STORED_FIELDS
        assert event["token_ids"] == tokens
        assert event["block_size"] == PAGE_TOKENS
        assert (event["medium"], event["lora_name"]) == ("GPU", None)


@pytest.mark.parametrize("form", ["map", "array"])
def test_under_load_a_subscriber_knows_exactly_what_is_cached(start_machine, form):
    number = random.randrange(2**32)
    print("seed", number)
    chance = random.Random(number)
    machine = start_machine(kv_events_form=form, pool_pages=65)
    documents = [document(chance, chance.randint(2, 20), PAGE_TOKENS) for _ in range(8)]
    with Subscriber(machine.events) as subscriber:
        for _ in range(200):
            base = chance.choice(documents)
            machine.put([*branch(chance, base, chance.randint(1, 8), PAGE_TOKENS), 1])
        last = document(chance, 2, PAGE_TOKENS)
        machine.put([*last, 1])
        while ids_of(last)[-1] not in subscriber.blocks:
            subscriber.next()
        assert len(subscriber.blocks) == cached_pages(machine)


def test_who_never_reads_misses_frames_and_costs_a_bounded_memory(start_machine):
    chance = random.Random(1)
    pages = 4000
    machine = start_machine(pool_pages=pages, layers=1, heads=1, head_size=1)
    with zmq.Context.instance().socket(zmq.SUB) as deaf:
        deaf.setsockopt(zmq.RCVHWM, 1)
        deaf.setsockopt(zmq.RCVBUF, 4096)
        deaf.setsockopt(zmq.SUBSCRIBE, b"")
        deaf.connect(machine.events)
        eventually(lambda: machine.metrics().sum("pando_kv_event_subscribers") == 1)
        before = memory_of(machine.pandod.pid, "VmRSS")
        while not machine.metrics().sum("pando_kv_event_dropped_frames_total"):
            for _ in range(10):
                machine.put(document(chance, pages // 2, PAGE_TOKENS))
        # The limit is a thousand frames of 64 KiB or little more.
        assert memory_of(machine.pandod.pid, "VmHWM") - before < 128 * MEBIBYTE


def test_a_late_subscriber_is_told_everything(start_machine):
    machine = start_machine(pool_pages=300)
    machine.put(list(range(200 * PAGE_TOKENS + 1)))
    with Subscriber(machine.events) as first, Subscriber(machine.events) as second:
        first.wait_for_blocks(200)
        second.wait_for_blocks(200)
        assert first.blocks == second.blocks
    eventually(lambda: machine.metrics().sum("pando_kv_event_subscribers") == 0)


def test_who_comes_after_a_time_without_subscribers_is_told_everything(start_machine):
    machine = start_machine(pool_pages=300)
    with Subscriber(machine.events) as first:
        machine.put(list(range(3 * PAGE_TOKENS + 1)))
        first.wait_for_blocks(3)
    eventually(lambda: machine.metrics().sum("pando_kv_event_subscribers") == 0)
    machine.client.flush()
    others = list(range(1000, 1000 + 5 * PAGE_TOKENS + 1))
    machine.put(others)
    with Subscriber(machine.events) as second:
        second.wait_for_blocks(5)
        assert list(second.blocks) == ids_of(others[:-1])
        assert second.frames[0].sequence > first.frames[-1].sequence


def test_after_a_kill_the_numbers_go_on_and_everything_is_told_anew(start_machine):
    machine = start_machine()
    with Subscriber(machine.events) as subscriber:
        machine.put(list(range(3 * PAGE_TOKENS + 1)))
        subscriber.wait_for_blocks(3)
        machine.kill_and_restart()
        machine.put(list(range(1000, 1000 + PAGE_TOKENS + 1)))
        before = subscriber.frames[-1].sequence
        # A replay brings the frames that came before the subscriber was back.
        missed = replay(machine.replay, before + 1)
        assert missed[0].events == [{"type": "AllBlocksCleared"}]
        assert [f.sequence for f in missed] == list(
            range(before + 1, before + 1 + len(missed))
        )


def test_a_replay_of_what_is_not_held_is_empty_and_everything_is_told(start_machine):
    machine = start_machine()
    machine.put(list(range(2 * PAGE_TOKENS + 1)))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(2)
        frames = len(subscriber.frames)
        assert replay(machine.replay, 0) == []
        told = subscriber.next()
        assert told.events[0] == {"type": "AllBlocksCleared"}
        assert len(subscriber.blocks) == 2
        assert len(subscriber.frames) == frames + 1
    page = machine.metrics()
    assert page.by("result", "pando_kv_event_replays_total") == {
        "answered": 0,
        "refused": 1,
    }
    assert page.sum("pando_kv_event_announcements_total") >= 2


def test_who_does_not_read_replays_keeps_nobody_from_them(start_machine):
    machine = start_machine()
    with Subscriber(machine.events) as subscriber, zmq.Context() as context:
        subscriber.wait_for_blocks(0)
        for i in range(20):
            machine.put(list(range(1000 * i, 1000 * i + PAGE_TOKENS + 1)))
        subscriber.wait_for_blocks(20)
        first = subscriber.frames[0].sequence
        with context.socket(zmq.DEALER) as idle:
            idle.linger = 0
            idle.rcvhwm = 1
            idle.rcvbuf = 4096
            idle.connect(machine.replay)
            for _ in range(2_000):
                idle.send_multipart([b"", struct.pack(">Q", first)])
            # The unread answers fill the space for waiting messages.
            eventually(
                lambda: machine.metrics().sum("pando_kv_event_replays_total") > 20
            )
            assert replay(machine.replay, first) == subscriber.frames
        assert replay(machine.replay, first) == subscriber.frames


def test_replays_and_live_frames_are_the_same(start_machine):
    machine = start_machine()
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        for i in range(20):
            machine.put(list(range(1000 * i, 1000 * i + PAGE_TOKENS + 1)))
            subscriber.wait_for_blocks(i + 1)
        assert (
            replay(machine.replay, subscriber.frames[1].sequence)
            == (subscriber.frames[1:])
        )


def test_adapters_are_named_and_salted_namespaces_left_out(start_machine):
    machine = start_machine()
    tokens = list(range(PAGE_TOKENS + 1))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(tokens, SALTED)
        machine.put(tokens, BIGRAM)
        machine.put(tokens, Namespace("adapter"))
        subscriber.wait_for_blocks(1)
        assert list(subscriber.blocks) == ids_of(tokens, "adapter")
        (event,) = subscriber.blocks.values()
        assert event["lora_name"] == "adapter"
        machine.client.flush()
        assert subscriber.next().events[0]["type"] == "BlockRemoved"
        for frame in subscriber.frames:
            assert b"a salt" not in frame.payload


def test_salted_and_bigram_namespaces_are_told_if_asked_for(start_machine):
    machine = start_machine(kv_events_include="salted,bigram")
    tokens = list(range(PAGE_TOKENS + 1))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(tokens, SALTED)
        subscriber.wait_for_blocks(1)
        (salted,) = subscriber.blocks.values()
        assert salted["cache_salt"] == "a salt"
        machine.put([*tokens, 7], BIGRAM)
        subscriber.wait_for_blocks(2)
        *_, pairs = subscriber.blocks.values()
        assert pairs["token_ids"] == [[i, i + 1] for i in range(PAGE_TOKENS)]


def test_small_pages_are_told_as_larger_blocks(start_machine):
    machine = start_machine(page_tokens=1, pool_pages=200, kv_events_block_tokens=16)
    machine.page_tokens = 1
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(list(range(41)))
        subscriber.wait_for_blocks(2)
        machine.put(list(range(60)))
        subscriber.wait_for_blocks(3)
        machine.client.flush()
        subscriber.wait_for_blocks(0)


def test_each_worker_has_a_port_and_a_topic(start_machine):
    machine = start_machine(
        kv_events_workers="a,b", kv_events_topic="kv@{worker}@{model}", model="m"
    )
    host, port = machine.events.rsplit(":", 1)
    other = f"{host}:{int(port) + 1}"
    with (
        Subscriber(machine.events, topic="kv@a@m") as one,
        Subscriber(other, topic="kv@b@m") as two,
    ):
        machine.put(list(range(PAGE_TOKENS + 1)))
        one.wait_for_blocks(1)
        two.wait_for_blocks(1)
        assert {f.topic for f in one.frames} == {"kv@a@m"}
        assert {f.topic for f in two.frames} == {"kv@b@m"}


def test_a_machine_that_stops_says_that_it_holds_nothing(start_machine):
    machine = start_machine()
    machine.put(list(range(PAGE_TOKENS + 1)))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(1)
        machine.client.close()
        assert machine.pandod.stop() == 0
        subscriber.wait_for_blocks(0)


def test_an_address_that_is_taken_is_named(start_machine, tmp_path):
    machine = start_machine()
    said = refused_start(tmp_path, f"--kv-events={machine.events}")
    assert f"{machine.events} cannot be bound: Address already in use" in said


def test_without_the_option_nothing_is_published(start_machine):
    machine = start_machine(kv_events="", kv_events_replay="")
    machine.put(list(range(PAGE_TOKENS + 1)))
    assert machine.metrics().sum("pando_kv_event_frames_total") == 0
