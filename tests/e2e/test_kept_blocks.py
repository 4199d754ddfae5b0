"""The blocks of a pandod under pando-keeper outlive the pandod."""

import contextlib
import gc
import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from blocks import (
    BLOCKS_ONLY,
    MIB,
    RESERVED,
    STORED,
    assert_holds,
    bytes_at,
    content,
    keys,
    of,
    spec,
    store,
)
from eventually import eventually
from handed_down import HandedDown, storing
from kept_pandod import KeptPandod, children_of, config_of, kept, memory_files
from pando_kv import BlockMemory, Client, Kind, PandoError
from pando_kv.blocks import MISSING, are_places
from pandod_process import Pandod
from worker_process import WorkerProcess

PROMPT = 1
KILLS = 25
# A ledger begins with these bytes.
WHOLE = b"PDBLDGR2"


@contextlib.contextmanager
def attached(server: Pandod) -> Iterator[tuple[Client, BlockMemory, Kind]]:
    with Client(server.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        yield client, memory, kind


def restart(server: KeptPandod) -> None:
    server.kill_server()
    server.wait_serving()


def test_the_next_pandod_has_the_blocks_at_their_places(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        files = memory_files(server.server_pid).keys()
        with attached(server) as (client, memory, kind):
            places = store(client, memory, 1, kind, keys(5))
        for deaths in (1, 2, 3):
            restart(server)
            assert memory_files(server.server_pid).keys() == files
            with attached(server) as (client, memory, kind):
                assert client.stats().blocks.recoveries == deaths
                asked = [of(kind, keys(5))]
                assert client.lookup_blocks(asked).tolist() == places.tolist()
                assert_holds(memory, kind, keys(5), places)


def test_a_kind_that_was_reset_is_empty_for_the_next_pandod(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        with attached(server) as (client, memory, kind):
            store(client, memory, 1, kind, keys(5))
            (renewed,) = client.reset_kinds([kind.number])
            store(client, memory, 2, renewed, keys(1, prompt=2))
        restart(server)
        with attached(server) as (client, _, kind):
            assert kind.generation == renewed.generation
            asked = [of(kind, keys(5) + keys(1, prompt=2))]
            places = client.lookup_blocks(asked)
            assert places[:5].tolist() == [MISSING] * 5
            assert are_places(places[5:]).all()


def test_the_block_that_was_used_least_recently_still_goes_first(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        with attached(server) as (client, memory, kind):
            for prompt in (1, 2, 3):
                store(client, memory, prompt, kind, keys(64, prompt))
            client.lookup_blocks([of(kind, keys(64, prompt=1))])
        restart(server)
        with attached(server) as (client, memory, kind):
            store(client, memory, 4, kind, keys(96, prompt=4))
            left = {
                prompt: are_places(
                    client.lookup_blocks([of(kind, keys(64, prompt))])
                ).sum()
                for prompt in (1, 2, 3)
            }
            assert left == {1: 64, 2: 32, 3: 64}


def test_what_workers_of_before_use_is_theirs_until_they_let_go(tmp_path):
    options = BLOCKS_ONLY | {"quarantine": "1h"}
    with (
        kept(tmp_path, **options) as server,
        WorkerProcess(server.address, PROMPT, "block_worker.py") as worker,
    ):
        locked = worker.do("attach", "store", "lock")
        reserved = worker.do("reserve")
        os.kill(worker.pid, signal.SIGSTOP)
        restart(server)
        with attached(server) as (client, memory, kind):
            asked = [of(kind, keys(RESERVED, PROMPT, STORED))]
            assert client.lookup_blocks(asked).tolist() == [MISSING] * RESERVED
            for prompt in range(10, 20):
                written = store(client, memory, prompt, kind, keys(64, prompt))
                assert not {*written.tolist()} & {*reserved, *locked}
            asked = [of(kind, keys(STORED, PROMPT))]
            assert client.lookup_blocks(asked).tolist() == locked
            worker.kill()
            eventually(lambda: client.stats().blocks.protected_blocks == 0)
            eventually(lambda: client.stats().blocks.reserved_blocks == 0)
            for prompt in range(20, 30):
                store(client, memory, prompt, kind, keys(64, prompt))
            assert client.lookup_blocks(asked).tolist() == [MISSING] * STORED


def fill(server: Pandod) -> None:
    """Stores five blocks, and then unmaps the memory."""
    with attached(server) as (client, memory, kind):
        assert are_places(store(client, memory, 1, kind, keys(5))).all()


def found(server: Pandod) -> bool:
    """Returns whether those five blocks are there."""
    with attached(server) as (client, _, kind):
        return bool(are_places(client.lookup_blocks([of(kind, keys(5))])).all())


def ledger_of(server: KeptPandod) -> BinaryIO:
    folder = Path(f"/proc/{server.server_pid}/fd")
    path = next(
        fd
        for fd in folder.iterdir()
        if os.readlink(fd).startswith("/memfd:pando-ledger")
    )
    return path.open("rb", buffering=0)


def test_blocks_with_which_pandod_crashes_again_and_again_are_given_up(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        fill(server)
        for crash in (signal.SIGSEGV, signal.SIGABRT, signal.SIGSEGV):
            assert found(server)
            server.kill_server(crash)
            server.wait_serving()
        assert "3 pandods crashed soon after their start" in server.log()
        assert not found(server)
        fill(server)
        restart(server)
        assert found(server)


def test_starts_that_fail_for_other_reasons_do_not_cost_the_blocks(tmp_path):
    """Runs under systemd, which restarts a pandod that ended by itself."""
    with (
        storing(tmp_path / "notify", "owner", "blocks", "block-ledger") as keeper,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        notify = {"NOTIFY_SOCKET": str(keeper.path)}

        def pandod(given: str, **options: object) -> HandedDown:
            return HandedDown(tmp_path, given, **(BLOCKS_ONLY | options))

        first = pandod("{}")
        first.start(**notify)
        fill(first)
        first.kill()
        http = f"127.0.0.1:{taken.getsockname()[1]}"
        for _ in range(4):
            failing = pandod(keeper.given(), http=http)
            with pytest.raises(pytest.fail.Exception, match="pandod ended as it"):
                failing.start(**notify)
        last = pandod(keeper.given())
        last.start(**notify)
        with contextlib.closing(last):
            assert found(last)
            last.close_in_order()


def test_memory_without_its_ledger_is_withheld_until_workers_let_go(tmp_path):
    with storing(tmp_path / "notify", "owner", "blocks") as keeper:
        notify = {"NOTIFY_SOCKET": str(keeper.path)}
        options = BLOCKS_ONLY | {"quarantine": "1h"}
        first = HandedDown(tmp_path, "{}", **options)
        first.start(**notify)
        with WorkerProcess(first.address, PROMPT, "block_worker.py") as worker:
            worker.do("attach", "store", "lock", "reserve")
            os.kill(worker.pid, signal.SIGSTOP)
            first.kill()
            last = HandedDown(tmp_path, keeper.given(), **options)
            last.start(**notify)
            with contextlib.closing(last), attached(last) as (client, memory, kind):
                places = store(client, memory, 1, kind, keys(16, prompt=2))
                assert not are_places(places).any()
                worker.kill()
                eventually(lambda: client.stats().blocks.used_bytes == 0)
                places = store(client, memory, 2, kind, keys(16, prompt=2))
                assert are_places(places).all()
                last.close_in_order()


def test_a_memory_of_another_size_begins_empty_and_says_so(tmp_path):
    options = {"memory": 16 * MIB, "block-extent": MIB}
    only_config = dict.fromkeys(BLOCKS_ONLY)
    config = config_of(tmp_path, **options)
    with kept(tmp_path, config=config, **only_config) as server:
        fill(server)
        with ledger_of(server) as ledger:
            assert ledger.read(len(WHOLE)) == WHOLE
            config_of(tmp_path, **options | {"memory": 32 * MIB})
            restart(server)
            assert "the kept blocks are not used" in server.log()
            assert not found(server)
            # A process that still holds the old ledger cannot take it for the new
            # memory's.
            ledger.seek(0)
            assert ledger.read(len(WHOLE)) == bytes(len(WHOLE))


def test_a_pandod_without_block_memory_says_that_it_gives_up_what_was_kept(tmp_path):
    config = config_of(tmp_path, memory=16 * MIB, **{"block-extent": MIB})
    options = BLOCKS_ONLY | dict.fromkeys(("memory", "block_extent"))
    with kept(tmp_path, config=config, **options) as server:
        fill(server)
        config_of(tmp_path, **{"pool-pages": 16})
        restart(server)
        given_up = [
            line
            for line in server.log().splitlines()
            if "what was kept for this pandod is given up" in line
        ]
        for name in ("blocks", "block-ledger"):
            assert any(f'"{name}"' in line for line in given_up)


def test_a_new_version_has_the_blocks_of_the_one_before(tmp_path):
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        fill(server)
        before = server.server_pid
        os.kill(server.pid, signal.SIGUSR2)
        eventually(lambda: before not in children_of(server.pid))
        eventually(lambda: server.log().count("pandod serves") == 2)
        assert found(server)


def test_a_pandod_that_hangs_is_replaced_and_its_blocks_stay(tmp_path):
    server = KeptPandod(tmp_path, drain_timeout="0s", **BLOCKS_ONLY)
    server.watchdog = 1
    server.start()
    try:
        fill(server)
        hung = server.server_pid
        os.kill(hung, signal.SIGSTOP)
        eventually(lambda: hung not in children_of(server.pid))
        eventually(lambda: server.log().count("pandod serves") == 2)
        assert found(server)
    finally:
        server.close_in_order()


def work(server: KeptPandod, seed: int, stop: threading.Event) -> int:
    """Stores and reads blocks until `stop` is set, through deaths of pandod. Returns
    the number of blocks read; each must have had the bytes of its key."""
    choose = random.Random(seed)
    read = 0
    while not stop.is_set():
        try:
            with attached(server) as (client, memory, kind):
                size = kind.spec.shard_bytes
                call = 0
                while not stop.is_set():
                    call += 1
                    named = keys(choose.randrange(1, 9), choose.randrange(60))
                    if choose.randrange(2):
                        store(client, memory, call, kind, named)
                        continue
                    places = client.acquire_blocks(call, [of(kind, named)])
                    for key, place in zip(named, places, strict=True):
                        if are_places(place):
                            held = bytes_at(memory, place, size)
                            assert (held == content(key, size)).all(), key
                            read += 1
                    client.release_blocks([call])
        except PandoError:
            # pandod is away, or another pandod has started.
            continue
    return read


def test_no_block_has_the_bytes_of_another_key_whenever_pandod_is_killed(tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    with kept(tmp_path, **BLOCKS_ONLY) as server:
        stop = threading.Event()
        read = [0] * 3
        failures = []

        def run(index: int) -> None:
            try:
                read[index] = work(server, seed + index, stop)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(read))]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            with Client(server.address) as watcher:
                goal = choose.randrange(1, 200)
                eventually(
                    lambda goal=goal, watcher=watcher: (
                        watcher.stats().blocks.published_blocks >= goal
                    )
                )
            server.kill_server()
        server.wait_serving()
        stop.set()
        for thread in threads:
            thread.join()
        assert not failures
        assert all(read)
        # No mapping of the memory is left afterwards.
        gc.collect()
        with Client(server.address) as client:
            eventually(lambda: client.stats().blocks.reserved_blocks == 0)
            assert client.check_invariants() == []
