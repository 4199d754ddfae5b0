"""A disk tier of blocks, which loads blocks after an eviction or a restart."""

from pathlib import Path

import pytest
from blocks import BLOCKS_ONLY, MIB, assert_holds, keys, of, spec, store
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, Operator, Shape
from pando_kv.blocks import MISSING, PENDING, are_places
from pandoctl import Pandoctl


class TieredBlocks:
    """A pandod with block memory, a disk tier for it, and helpers of an engine."""

    def __init__(self, start_pandod, folder: Path, **options: object) -> None:
        self.folder = folder
        self.http = free_address()
        self.pandod = start_pandod(
            **BLOCKS_ONLY
            | {
                "http": self.http,
                "block_tier_disk": folder,
                "block_tier_disk_bytes": 64 * MIB,
            }
            | options
        )

    def restart(self) -> None:
        """Kills and starts pandod, as a crash would."""
        self.pandod.kill()
        self.pandod.start()

    def figure(self, name: str, **labels: str) -> int:
        return int(MetricsPage(self.http).sum(f"pando_block_tier_{name}", **labels))

    def store(self, client, memory, kind, named, reservation=1) -> None:
        """Stores blocks and returns once the tier has them."""
        held = self.figure("blocks")
        store(client, memory, reservation, kind, named)
        eventually(lambda: self.figure("blocks") == held + len(named))

    def files(self) -> list[Path]:
        return sorted(
            path
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != "lock"
        )


@pytest.fixture
def tiered(start_pandod, tmp_path):
    return TieredBlocks(start_pandod, tmp_path / "tier")


@pytest.fixture(params=["lane", "grpc"])
def connect(request):
    return lambda tiered: Client(tiered.pandod.address, lane=request.param == "lane")


def loaded(client, lock, asked):
    """Asks as an engine does in its steps, until no block is being loaded."""
    places = client.acquire_blocks(lock, asked, load=True)
    while (places == PENDING).any():
        lock += 1
        places = client.acquire_blocks(lock, asked, load=True)
    return places


def test_blocks_are_found_after_pandod_was_killed_with_the_same_bytes(tiered, connect):
    named = keys(8)
    with connect(tiered) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        tiered.store(client, memory, kind, named)
    tiered.restart()
    eventually(lambda: tiered.figure("blocks") == len(named))
    with connect(tiered) as client:
        memory = client.attach_memory()
        kind, other = client.open_kinds([spec(), spec("b")])
        assert client.lookup_blocks([of(kind, named)]).tolist() == [MISSING] * 8
        assert_holds(memory, kind, named, loaded(client, 1, [of(kind, named)]))
        asked = [of(other, named)]
        assert client.lookup_blocks(asked, load=True).tolist() == [MISSING] * 8
    assert tiered.figure("copied_blocks_total", direction="load") == len(named)
    with Operator(tiered.pandod.address) as operator:
        assert operator.check_invariants() == []


def test_what_was_evicted_is_loaded_for_a_lookup_that_asks_for_it(tiered):
    first = keys(4)
    with Client(tiered.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec("large", MIB)])
        tiered.store(client, memory, kind, first)
        for prompt in range(1, 5):
            tiered.store(client, memory, kind, keys(4, prompt), 1 + prompt)
        asked = [of(kind, first, shape=Shape.PREFIX)]
        eventually(
            lambda: are_places(client.lookup_blocks(asked, load=True)).all(),
        )
        assert_holds(memory, kind, first, client.lookup_blocks(asked))


def test_a_kind_that_was_reset_has_nothing_after_a_kill(tiered, connect):
    named = keys(4)
    with connect(tiered) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        tiered.store(client, memory, kind, named)
        (renewed,) = client.reset_kinds([kind.number])
        assert renewed.generation == 2
        asked = [of(renewed, named)]
        assert client.lookup_blocks(asked, load=True).tolist() == [MISSING] * 4
        tiered.store(client, memory, renewed, named[:1], 2)
    tiered.restart()
    eventually(lambda: tiered.figure("blocks") == 1)
    with connect(tiered) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = loaded(client, 1, [of(kind, named)])
        assert_holds(memory, kind, named[:1], places[:1])
        assert places[1:].tolist() == [MISSING] * 3


def test_damaged_files_are_misses_and_counted(tiered):
    named = keys(3)
    with Client(tiered.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        tiered.store(client, memory, kind, named)
    tiered.pandod.kill()
    truncated, flipped, _ = tiered.files()
    truncated.write_bytes(truncated.read_bytes()[:-1])
    damaged = bytearray(flipped.read_bytes())
    damaged[-100] ^= 1
    flipped.write_bytes(damaged)
    tiered.pandod.start()
    eventually(lambda: tiered.figure("blocks") == 3)
    with Client(tiered.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = loaded(client, 1, [of(kind, named)])
        found = are_places(places)
        assert found.sum() == 1
        whole = [key for key, is_found in zip(named, found, strict=True) if is_found]
        assert_holds(memory, kind, whole, places[found])
    assert tiered.figure("failures_total", step="verify") == 2
    assert len(tiered.files()) == 1


def test_operators_see_what_the_tier_has(tiered):
    named = keys(2)
    with Client(tiered.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        tiered.store(client, memory, kind, named[:1])
        with Operator(tiered.pandod.address) as operator:
            assert operator.explain_block(kind.number, named[0]).is_kept
            assert not operator.explain_block(kind.number, named[1]).is_kept
        ctl = Pandoctl(tiered.pandod.address)
        assert "has it\n" in ctl("explain-block", kind.number, named[0].hex()).out
        assert "has it not" in ctl("explain-block", kind.number, named[1].hex()).out
        page = MetricsPage(tiered.http)
        stores = page.by("kind", "pando_block_kind_tier_stores_total")
        assert stores["kind a"] == 1


def test_without_a_memory_there_is_no_tier_of_it(start_pandod, tmp_path):
    with pytest.raises(pytest.fail.Exception, match="needs memory"):
        start_pandod(block_tier_disk=tmp_path / "tier", block_tier_disk_bytes=MIB)


def test_a_kind_that_finds_no_room_refuses_no_loads_of_others(start_pandod, tmp_path):
    config = tmp_path / "pandod.yaml"
    config.write_text("block_quotas: [{name: chat, label: kind chat, cap: 1MiB}]")
    tiered = TieredBlocks(start_pandod, tmp_path / "tier", config=config)
    with Client(tiered.pandod.address) as client:
        memory = client.attach_memory()
        chat, batch = client.open_kinds([spec("chat", MIB), spec("batch", MIB)])
        first, second = keys(2)
        tiered.store(client, memory, chat, [first])
        tiered.store(client, memory, chat, [second])  # evicts the first
        for prompt in range(1, 18):
            tiered.store(client, memory, batch, keys(1, prompt))
        client.acquire_blocks(1, [of(chat, [second])])
        assert loaded(client, 100, [of(chat, [first])]) == [MISSING]
        evicted = of(batch, keys(1, prompt=1))
        assert client.lookup_blocks([evicted]) == [MISSING]
        assert are_places(loaded(client, 200, [evicted])).all()
