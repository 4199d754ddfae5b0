"""vLLM's own events for routers, and what they report about Pando's blocks."""

import itertools
from collections import Counter
from pathlib import Path

import fleet.routers
import msgspec
import pytest
import zmq
from engines.vllm.offloading.conftest import reserve_all
from engines.vllm.start import prompt
from eventually import eventually
from fleet.routers import Source, dynamo_indexer
from pinned_environment import EnvironmentMissing, pinned_environment
from vllm.config import KVEventsConfig
from vllm.distributed.kv_events import KVEventBatch

PLAIN = {"windows": (None,)}


class Router:
    """A router's knowledge of the blocks in host memory, from the events of an engine.

    It is used from one thread."""

    def __init__(self, endpoint):
        self._socket = zmq.Context.instance().socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.connect(endpoint)
        self._socket.subscribe("")
        self._decoder = msgspec.msgpack.Decoder(KVEventBatch)
        self.blocks = {}
        """The latest event of each stored block, by its group and its hash."""
        self.reports = Counter()
        """For each block, the number of reports as stored minus those as removed."""

    def read(self):
        while self._socket.poll(0):
            _, _, payload = self._socket.recv_multipart()
            for event in self._decoder.decode(payload).events:
                self._apply(event)

    def _apply(self, event):
        kind = type(event).__name__
        if kind == "AllBlocksCleared":
            self.blocks.clear()
            self.reports.clear()
        elif event.medium == "CPU" and kind == "BlockStored":
            names = [(event.group_idx, block) for block in event.block_hashes]
            self.blocks |= dict.fromkeys(names, event)
            self.reports.update(names)
        elif event.medium == "CPU":
            for block in event.block_hashes:
                self.blocks.pop((event.group_idx, block), None)
                self.reports[event.group_idx, block] -= 1

    def tokens_of(self, prompt):
        """Returns how many tokens from the beginning of the prompt are stored."""
        self.read()
        known = {
            (event.parent_block_hash, tuple(event.token_ids)): block
            for (_, block), event in self.blocks.items()
        }
        parent, found = None, 0
        while True:
            part = tuple(prompt[found : found + 32])
            parent = known.get((parent, part))
            if parent is None:
                return found
            found += 32

    def close(self):
        self._socket.close()


@pytest.fixture
def start_reporting(start, tmp_path):
    """Yields a function that starts an engine with events, and a router for them."""
    numbers, routers = itertools.count(), []

    def make(options=None, **arguments):
        endpoint = f"ipc://{tmp_path}/events{next(numbers)}"
        config = KVEventsConfig(
            enable_kv_cache_events=True, publisher="zmq", endpoint=endpoint
        )
        options = {"self_describing_kv_events": True} | (options or {})
        engine = start(kv_events_config=config, options=options, **arguments)
        router = Router(endpoint)
        routers.append(router)
        # A subscription takes effect a moment after the connection.
        seeds = itertools.count(1000)

        def hears():
            engine.ask(f"hello {next(seeds)}", prompt(100, seed=next(seeds)))
            router.read()
            return bool(router.blocks)

        eventually(hears)
        return engine, router

    yield make
    for router in routers:
        router.close()


@pytest.fixture(scope="session")
def dynamo():
    lock = Path(fleet.routers.__file__).parent / "environments/dynamo.lock"
    try:
        return pinned_environment("fleet", lock)
    except (EnvironmentMissing, OSError) as error:
        pytest.skip(str(error))


def evict_everything(operator, engine):
    """Evicts all blocks by reserving the whole memory for other keys."""
    for reservation in reserve_all(operator, engine):
        operator.discard_blocks(reservation)


def test_a_router_knows_what_an_engine_has_stored(start_reporting):
    engine, router = start_reporting(**PLAIN)
    tokens = prompt(500, seed=1)
    engine.ask("computed", tokens)
    # vLLM publishes in a separate thread.
    eventually(lambda: router.tokens_of(tokens) == 480)
    assert router.tokens_of(prompt(500, seed=2)) == 0


def test_a_router_knows_what_an_engine_has_found(start, start_reporting):
    """Another engine has stored the blocks."""
    other, tokens = start(**PLAIN), prompt(500, seed=3)
    other.ask("computed", tokens)
    engine, router = start_reporting(**PLAIN)
    assert router.tokens_of(tokens) == 0
    assert engine.ask("found", tokens) == 480
    eventually(lambda: router.tokens_of(tokens) == 480)


def test_a_router_hears_what_pando_has_evicted(start_reporting, operator):
    engine, router = start_reporting(**PLAIN)
    tokens = prompt(500, seed=4)
    engine.ask("computed", tokens)
    eventually(lambda: router.tokens_of(tokens) == 480)
    evict_everything(operator, engine)
    seeds = itertools.count(2000)

    def has_heard():
        # An engine publishes events only in its steps.
        engine.ask(f"next {next(seeds)}", prompt(3, seed=next(seeds)))
        return router.tokens_of(tokens) == 0

    eventually(has_heard)
    engine.forget()
    assert engine.ask("computed anew", tokens) == 0
    eventually(lambda: router.tokens_of(tokens) == 480)


def take_events(engine):
    """Runs a step without requests; a thread then looks for removed blocks."""
    engine.step()


def push_out(engine):
    """Fills the engine's own cache with other prompts, so it loses earlier ones."""
    for seed in (50, 51, 52):
        engine.ask(f"other {seed}", prompt(700, seed=seed))


def test_a_router_knows_what_is_stored_again_before_it_heard_that_it_was_gone(
    start_reporting, operator
):
    """vLLM forgets the tokens of a block when it reports the block as removed."""
    engine, router = start_reporting(**PLAIN, blocks=28)
    tokens = prompt(500, seed=20)
    engine.ask("computed", tokens)
    eventually(lambda: router.tokens_of(tokens) == 480)
    push_out(engine)
    evict_everything(operator, engine)
    take_events(engine)
    eventually(lambda: len(engine.manager._announced._removed) > 15)
    assert engine.ask("computed anew", tokens) == 0
    eventually(lambda: router.tokens_of(tokens) == 480)
    push_out(engine)
    assert engine.ask("found", tokens) == 480


@pytest.mark.parametrize("blocks_per_chunk", [1, 2])
def test_a_router_that_counts_reports_comes_to_none(
    blocks_per_chunk, start_reporting, operator
):
    """In between, the engine stores blocks again and finds some."""
    chunks = {"blocks_per_chunk": blocks_per_chunk}
    engine, router = start_reporting(options=chunks, **PLAIN, blocks=28)
    tokens = prompt(500, seed=21)
    for turn in range(4):
        engine.ask(f"turn {turn}", tokens)
        push_out(engine)
        if turn % 2:
            evict_everything(operator, engine)
    evict_everything(operator, engine)

    def has_heard():
        take_events(engine)
        router.read()
        return not router.blocks

    eventually(has_heard)
    assert set(router.reports.values()) == {0}


def test_a_router_hears_that_pandod_has_begun_anew(start_reporting, pandod):
    engine, router = start_reporting(**PLAIN)
    tokens = prompt(500, seed=5)
    engine.ask("computed", tokens)
    eventually(lambda: router.tokens_of(tokens) == 480)
    pandod.kill()
    pandod.start()
    seeds = itertools.count(3000)

    def has_heard():
        engine.ask(f"next {next(seeds)}", prompt(3, seed=next(seeds)))
        return router.tokens_of(tokens) == 0

    eventually(has_heard)


def test_windows_are_reported_without_tokens(start_reporting):
    """vLLM itself reports windows in this form, which routers do not read."""
    engine, router = start_reporting()
    engine.ask("computed", prompt(500, seed=7))

    def by_group():
        router.read()
        return {event.group_idx: event for event in router.blocks.values()}

    eventually(lambda: len(by_group()) == 3)
    reported = by_group()
    assert reported[0].token_ids
    assert reported[1].token_ids == reported[2].token_ids == []


def test_an_engine_without_events_asks_for_nothing_more(start):
    engine = start(**PLAIN)
    engine.ask("computed", prompt(500, seed=8))
    assert engine.manager._announced is None
    assert list(engine.manager.take_events()) == []


def test_dynamo_credits_what_is_in_host_memory(start, tmp_path, dynamo, operator):
    """The credit outlasts the engine's own cache, and ends with Pando's eviction."""
    endpoint = f"ipc://{tmp_path}/events"
    engine = start(
        **PLAIN,
        blocks=28,
        options={"self_describing_kv_events": True},
        kv_events_config=KVEventsConfig(
            enable_kv_cache_events=True,
            publisher="zmq",
            endpoint=endpoint,
            replay_endpoint=f"{endpoint}-replay",
        ),
    )
    tokens = prompt(500, seed=9)
    with dynamo_indexer(dynamo, tmp_path) as router:
        router.register(Source(1, endpoint, f"{endpoint}-replay", 32))
        engine.ask("computed", tokens)
        seeds = itertools.count(4000)

        def says(tiers):
            engine.ask(f"next {next(seeds)}", prompt(3, seed=next(seeds)))
            return router.tiers(tokens) == tiers

        eventually(lambda: says({"gpu": 480, "cpu": 480, "disk": 480}))
        for seed in (10, 11, 12):
            engine.ask(f"other {seed}", prompt(700, seed=seed))
        eventually(lambda: says({"gpu": 0, "cpu": 480, "disk": 480}))
        evict_everything(operator, engine)
        eventually(lambda: says({}))
