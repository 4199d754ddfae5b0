"""Events about the tiers of a machine, and the scores that routers derive from them."""

import random
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from event_follower import page_hashes, seed
from eventually import eventually
from fleet import routers
from fleet.machine import Machine
from fleet.prompts_of_documents import branch, document
from fleet.routers import Source
from fleet.subscriber import Subscriber
from pando_kv import Namespace, PrefixQuery, Tier
from pandod_process import PAGE_TOKENS

# The size of a page in the pool of Pandod.
PAGE_BYTES = 4096
# No test waits that long.
WAIT_SECONDS = 60
ADAPTER = Namespace("adapter")


def start(start_machine, tmp_path, **options: Any) -> Machine:
    """Starts a machine with a host and a disk tier, about which routers are told."""
    told = {
        "model": "m",
        "kv_events_tiers": "yes",
        "tier_host_bytes": "4MiB",
        "tier_disk": tmp_path / "tier",
        "tier_disk_bytes": "4MiB",
        "tier_min_load_tokens": PAGE_TOKENS,
    }
    return start_machine(**(told | options))


DISK_ALONE = {"tier_host_bytes": None}


def ids_of(tokens: list[int], namespace: Namespace | None = None) -> list[int]:
    """Returns the block ids that docs/protocol.md and docs/fleet.md define."""
    key = namespace.extra_key if namespace else None
    hashes = page_hashes(seed(key), tokens, PAGE_TOKENS)
    return [int.from_bytes(page[:8], "big") for page in hashes]


def held_in(machine: Machine, tier: str) -> int:
    return int(machine.metrics().sum("pando_tier_pages", tier=tier))


def evict_all(machine: Machine) -> None:
    """Evicts all blocks, including those that a tier is still storing."""

    def is_empty() -> bool:
        machine.client.evict(1_000_000)
        pages = machine.client.stats().pages
        return pages.evictable + pages.protected == 0

    eventually(is_empty)


def load(machine: Machine, tokens: list[int], namespace: Namespace | None) -> None:
    """Makes a request that waits until its prompt is loaded as far as possible."""
    prompt = np.array(tokens, np.uint32)
    match = machine.client.match_prefix(
        prompt, namespace=namespace, lock=True, pending_wait=WAIT_SECONDS
    )
    match.lock.release()


def said(
    machine: Machine, tokens: list[int], namespace: Namespace | None = None
) -> tuple[int, int, Tier]:
    """Returns the ends of the pool's and the tiers' tokens, and the slowest tier."""
    query = PrefixQuery(np.array(tokens, np.uint32), namespace=namespace)
    (score,) = machine.client.match_prefixes([query], tell_loadable=True)
    end = score.matched_tokens + score.loadable_tokens
    return score.matched_tokens, end, score.loadable_tier


def known(
    subscriber: Subscriber, tokens: list[int], namespace: Namespace | None = None
) -> tuple[int, int, Tier]:
    """Returns the same as said(), by the blocks that a subscriber knows of."""
    ids = ids_of(tokens, namespace)

    def end_of(medium: str, begin: int) -> int:
        blocks = subscriber.kept[medium]
        return next(
            (i for i in range(begin, len(ids)) if ids[i] not in blocks), len(ids)
        )

    matched = end = end_of("GPU", 0)
    slowest = Tier.NONE
    while True:
        in_host = end_of("CPU", end)
        on_disk = end_of("STORAGE", in_host)
        if on_disk > in_host:
            slowest = Tier.DISK
        elif in_host > end and slowest == Tier.NONE:
            slowest = Tier.HOST
        if on_disk == end:
            return matched * PAGE_TOKENS, end * PAGE_TOKENS, slowest
        end = on_disk


class Storm:
    """Random requests for far more blocks than the pool and the tiers hold."""

    def __init__(self, chance: random.Random, machine: Machine) -> None:
        self._chance = chance
        self._machine = machine
        self._prompts: list[tuple[list[int], Namespace | None]] = []

    def requests(self, count: int) -> None:
        chance = self._chance
        for _ in range(count):
            if self._prompts and chance.random() < 0.2:
                load(self._machine, *chance.choice(self._prompts))
                continue
            if self._prompts and chance.random() < 0.6:
                of, _ = chance.choice(self._prompts)
                tokens = branch(chance, of, chance.randint(1, 4), PAGE_TOKENS)
                tokens = tokens[: 30 * PAGE_TOKENS]
            else:
                tokens = document(chance, chance.randint(2, 20), PAGE_TOKENS)
            adapter = ADAPTER if chance.random() < 0.2 else None
            self._prompts.append((tokens, adapter))
            self._machine.put([*tokens, 1], adapter)

    def probes(self, count: int) -> list[tuple[list[int], Namespace | None]]:
        return self._chance.choices(self._prompts, k=count)


def test_each_medium_is_told_by_itself(start_machine, tmp_path):
    machine = start(start_machine, tmp_path)
    tokens = list(range(100, 100 + 3 * PAGE_TOKENS))
    ids = ids_of(tokens)

    def holds(subscriber: Subscriber, **media: list[int]) -> bool:
        subscriber.take_waiting()
        return {m: list(b) for m, b in subscriber.kept.items() if b} == media

    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put([*tokens, 1])
        eventually(lambda: holds(subscriber, GPU=ids, CPU=ids, STORAGE=ids))
        for medium in ("CPU", "STORAGE"):
            (event,) = {id(e): e for e in subscriber.kept[medium].values()}.values()
            assert event["token_ids"] == tokens
            assert event["block_size"] == PAGE_TOKENS
            assert event["parent_block_hash"] is None
            assert (event["medium"], event["lora_name"]) == (medium, None)
        evict_all(machine)
        eventually(lambda: holds(subscriber, CPU=ids, STORAGE=ids))
        machine.client.flush()
        eventually(lambda: holds(subscriber))


def test_without_the_option_only_the_pool_is_told(start_machine, tmp_path):
    machine = start(start_machine, tmp_path, kv_events_tiers=None)
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(list(range(2 * PAGE_TOKENS + 1)))
        eventually(lambda: held_in(machine, "disk") == 2)
        evict_all(machine)
        machine.put(list(range(1000, 1000 + PAGE_TOKENS + 1)))
        eventually(lambda: held_in(machine, "disk") == 3)
        subscriber.wait_for_blocks(1)
        assert not subscriber.kept["CPU"] and not subscriber.kept["STORAGE"]


@pytest.mark.parametrize("tiers", [{}, DISK_ALONE], ids=["both", "disk"])
def test_after_storms_a_subscriber_knows_what_the_tiers_say(
    start_machine, tmp_path, tiers
):
    number = random.randrange(2**32)
    print("seed", number)
    chance = random.Random(number)
    # Neither tier can hold all blocks, and the host tier holds fewer than the disk.
    sizes = {
        "pool_pages": 129,
        "tier_host_bytes": 200 * PAGE_BYTES,
        "tier_disk_bytes": 400 * PAGE_BYTES,
    }
    sizes |= tiers
    machine = start(start_machine, tmp_path, **sizes)
    storm = Storm(chance, machine)
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)

        def agrees(subscriber: Subscriber, prompt: list[int], adapter: Any) -> bool:
            subscriber.take_waiting()
            return known(subscriber, prompt, adapter) == said(machine, prompt, adapter)

        def counts_agree(subscriber: Subscriber) -> bool:
            subscriber.take_waiting()
            return len(subscriber.kept["STORAGE"]) == held_in(machine, "disk") and (
                len(subscriber.kept["CPU"]) == held_in(machine, "host")
                if sizes["tier_host_bytes"]
                else not subscriber.kept["CPU"]
            )

        def check(subscriber: Subscriber) -> None:
            eventually(lambda: counts_agree(subscriber))
            for prompt, adapter in storm.probes(60):
                eventually(lambda p=prompt, a=adapter: agrees(subscriber, p, a))

        for _ in range(3):
            storm.requests(60)
            check(subscriber)
        with Subscriber(machine.events) as late:
            check(late)
            # All subscribers received that announcement. It lists the pool's blocks
            # first, then those of the tiers.
            check(subscriber)
            for medium, blocks in late.kept.items():
                assert blocks.keys() == subscriber.kept[medium].keys()
            media = [
                event["medium"]
                for frame in late.frames
                for event in frame.events
                if event["type"] == "BlockStored"
            ]
            last_of_pool = max(i for i, m in enumerate(media) if m == "GPU")
            assert "CPU" not in media[:last_of_pool]
            assert "STORAGE" not in media[:last_of_pool]
        machine.client.flush(ADAPTER)
        check(subscriber)
        machine.client.flush()
        eventually(lambda: counts_agree(subscriber))
        storm.requests(20)
        check(subscriber)


def test_what_a_restart_found_on_disk_is_told_once_it_is_used(start_machine, tmp_path):
    machine = start(start_machine, tmp_path, **DISK_ALONE)
    tokens = document(random.Random(1), 5, PAGE_TOKENS)
    other = document(random.Random(2), 5, PAGE_TOKENS)
    for prompt in (tokens, other):
        machine.put([*prompt, 1])
    eventually(lambda: held_in(machine, "disk") == 10)
    machine.kill_and_restart()
    assert held_in(machine, "disk") == 10
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        load(machine, tokens, None)
        ids = set(ids_of(tokens))
        while subscriber.kept["STORAGE"].keys() != ids or len(subscriber.blocks) != 5:
            subscriber.next()


def test_small_pages_are_told_as_larger_blocks(start_machine, tmp_path):
    machine = start(
        start_machine,
        tmp_path,
        **DISK_ALONE,
        page_tokens=1,
        pool_pages=200,
        kv_events_block_tokens=16,
    )
    machine.page_tokens = 1
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(list(range(60)))
        while len(subscriber.kept["STORAGE"]) < 3:
            subscriber.next()
        assert subscriber.kept["STORAGE"].keys() == subscriber.blocks.keys()
        machine.client.flush()
        while subscriber.kept["STORAGE"]:
            subscriber.next()


def test_salted_and_bigram_namespaces_are_left_out(start_machine, tmp_path):
    machine = start(start_machine, tmp_path, **DISK_ALONE)
    tokens = list(range(PAGE_TOKENS + 1))
    with Subscriber(machine.events) as subscriber:
        subscriber.wait_for_blocks(0)
        machine.put(tokens, Namespace(cache_salt="a salt"))
        machine.put(tokens, Namespace(bigram=True))
        eventually(lambda: held_in(machine, "disk") == 2)
        machine.put(tokens, ADAPTER)
        while not subscriber.kept["STORAGE"]:
            subscriber.next()
        assert list(subscriber.kept["STORAGE"]) == ids_of(tokens, ADAPTER)
        for frame in subscriber.frames:
            assert b"a salt" not in frame.payload


def test_routers_credit_what_is_on_disk_alone(
    start_machine, dynamo, vllm_router, tmp_path
):
    machine = start(start_machine, tmp_path, **DISK_ALONE)
    tokens = document(random.Random(1), 10, PAGE_TOKENS)
    with ExitStack() as stack:
        engine = stack.enter_context(routers.engine())
        source = Source(1, machine.events, machine.replay, PAGE_TOKENS, engine)
        indexer = stack.enter_context(routers.dynamo_indexer(dynamo, tmp_path))
        indexer.register(source)
        router = stack.enter_context(
            routers.vllm_router(vllm_router, tmp_path, [source])
        )
        machine.put([*tokens, 1])
        eventually(lambda: indexer.tiers(tokens).get("gpu") == len(tokens))
        eventually(lambda: router.choose([*tokens, 1]) == (1, len(tokens)))
        eventually(lambda: held_in(machine, "disk") == 10)
        evict_all(machine)
        assert said(machine, tokens) == (0, len(tokens), Tier.DISK)
        on_disk = {"gpu": 0, "cpu": 0, "disk": len(tokens)}
        eventually(lambda: indexer.tiers(tokens) == on_disk)
        # The router counts a block on disk for less than one in the pool.
        eventually(lambda: 0 < router.choose([*tokens, 1])[1] < len(tokens))
        machine.client.flush()
        eventually(lambda: indexer.tiers(tokens) == {})
        eventually(lambda: router.choose([*tokens, 1])[1] == 0)


def test_after_storms_dynamo_knows_what_can_be_loaded(start_machine, dynamo, tmp_path):
    number = random.randrange(2**32)
    print("seed", number)
    chance = random.Random(number)
    machine = start(
        start_machine,
        tmp_path,
        **DISK_ALONE | {"pool_pages": 129, "tier_disk_bytes": 400 * PAGE_BYTES},
    )
    storm = Storm(chance, machine)
    with routers.dynamo_indexer(dynamo, tmp_path) as indexer:
        indexer.register(Source(1, machine.events, machine.replay, PAGE_TOKENS))

        def agrees(prompt: list[int], adapter: Namespace | None) -> bool:
            name = {"lora_name": adapter.extra_key} if adapter else {}
            tiers = indexer.tiers(prompt, **name)
            matched, loadable, _ = said(machine, prompt, adapter)
            return (tiers.get("gpu", 0), tiers.get("disk", 0)) == (matched, loadable)

        for _ in range(3):
            storm.requests(60)
            for prompt, adapter in storm.probes(30):
                eventually(lambda p=prompt, a=adapter: agrees(p, a))
