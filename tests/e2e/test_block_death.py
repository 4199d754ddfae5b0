"""Workers that die, stop or are cut off while they lock and reserve blocks."""

import contextlib
import os
import signal

import pytest
from blocks import (
    BLOCKS_ONLY,
    RESERVED,
    STORED,
    assert_holds,
    keys,
    of,
    spec,
    store,
)
from cutter import Cutter
from eventually import eventually
from impatience import impatient
from metrics_page import free_address
from pando_kv import (
    AwayError,
    Client,
    DeadlineError,
    PandoError,
    SessionLostError,
)
from pando_kv.blocks import MISSING, PENDING, are_places
from worker_process import WorkerProcess

# A test that sets this time must not have to wait for it.
NEVER = "1h"
PROMPT = 1
LOCKED = keys(STORED, PROMPT)
RESERVED_KEYS = keys(RESERVED, PROMPT, STORED)


def worker(address: str) -> WorkerProcess:
    return WorkerProcess(address, PROMPT, "block_worker.py")


@contextlib.contextmanager
def reader(address: str):
    with Client(address, name="reader") as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        yield client, memory, kind


def flood(client: Client, memory, kind, prompts: range) -> None:
    """Stores more blocks than the memory has room for."""
    for prompt in prompts:
        store(client, memory, prompt, kind, keys(64, prompt))


def test_a_killed_worker_loses_its_locks_and_reservations_with_its_process(
    start_pandod,
):
    pandod = start_pandod(session_grace=NEVER, quarantine=NEVER, **BLOCKS_ONLY)
    with reader(pandod.address) as (client, memory, kind):
        with worker(pandod.address) as killed:
            killed.do("attach", "store", "lock", "reserve", "write")
            asked = [of(kind, RESERVED_KEYS)]
            assert client.lookup_blocks(asked).tolist() == [PENDING] * RESERVED
            flood(client, memory, kind, range(10, 20))
            locked = client.acquire_blocks(1, [of(kind, LOCKED)], all=True)
            assert_holds(memory, kind, LOCKED, locked)
            client.release_blocks([1])
            killed.kill()
            eventually(
                lambda: client.lookup_blocks(asked).tolist() == [MISSING] * RESERVED
            )
            # Others may use the room of its reserved blocks, and its locked blocks can
            # be evicted.
            flood(client, memory, kind, range(20, 30))
            asked = [of(kind, LOCKED)]
            assert client.lookup_blocks(asked).tolist() == [MISSING] * STORED


def test_a_worker_that_stands_still_keeps_what_it_may_still_touch(start_pandod):
    pandod = start_pandod(block_write_limit="50ms", **BLOCKS_ONLY)
    with (
        worker(pandod.address) as stopped,
        reader(pandod.address) as (client, memory, kind),
    ):
        reserved = stopped.do("attach", "store", "lock", "reserve")
        stopped.pause()
        asked = [of(kind, RESERVED_KEYS)]
        # A caller does not wait for the stopped worker...
        eventually(lambda: client.lookup_blocks(asked).tolist() == [MISSING] * RESERVED)
        instead = client.reserve_blocks(1, asked)
        assert are_places(instead).all()
        client.discard_blocks(1)
        # ... and pandod gives the stopped worker's places to no other caller.
        assert not {*instead.tolist()} & {*reserved}
        mine = client.reserve_blocks(3, [of(kind, keys(300, prompt=40))])
        assert not {*mine[are_places(mine)].tolist()} & {*reserved}
        client.discard_blocks(3)
        flood(client, memory, kind, range(10, 20))
        held = client.acquire_blocks(2, [of(kind, LOCKED)], all=True)
        assert_holds(memory, kind, LOCKED, held)
        stopped.resume()
        stopped.do("check", "publish")


def test_a_cut_connection_takes_no_locks_while_the_process_lives(
    start_pandod, tmp_path
):
    tcp = free_address()
    pandod = start_pandod(
        **BLOCKS_ONLY | {"session_grace": "0s", "quarantine": "0s"},
        **{"tcp": tcp, "tcp_insecure": "yes"},
    )
    cutter = Cutter(tmp_path / "cut.sock", tcp)
    with (
        worker(cutter.address) as cut,
        reader(pandod.address) as (client, memory, kind),
    ):
        places = cut.do("attach", "store", "lock")
        reserved = cut.do("reserve")
        cutter.close()
        eventually(lambda: client.stats().sessions == 1)
        # The session is lost, but the process may still read and write.
        flood(client, memory, kind, range(10, 30))
        found = client.acquire_blocks(1, [of(kind, LOCKED)], all=True)
        assert found.tolist() == places
        assert_holds(memory, kind, LOCKED, found)
        mine = client.reserve_blocks(2, [of(kind, keys(300, prompt=40))])
        assert not {*mine[are_places(mine)].tolist()} & {*reserved}


def test_a_resumed_session_goes_on_with_what_it_holds(start_pandod, tmp_path):
    pandod = start_pandod(session_grace=NEVER, **BLOCKS_ONLY)
    with Cutter(tmp_path / "cut.sock", pandod.socket) as cutter:
        with Client(cutter.address) as client:
            memory = client.attach_memory()
            (kind,) = client.open_kinds([spec()])
            named = keys(3)
            places = client.reserve_blocks(1, [of(kind, named)])
            cutter.cut()
            # The client repeats the reservation until pandod answers.
            assert client.reserve_blocks(1, [of(kind, named)]).tolist() == list(places)
            client.publish_blocks(1)
            found = client.lookup_blocks([of(kind, named)])
            assert found.tolist() == places.tolist()
            assert client.generation == 1
            assert memory.epoch == client.epoch


def test_after_a_restart_everything_is_void_but_the_old_memory_can_be_read(
    start_pandod,
):
    pandod = start_pandod(**BLOCKS_ONLY)
    lost = []
    with Client(pandod.address, on_session_lost=lost.append) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = store(client, memory, 1, kind, keys(3))
        pandod.kill()
        pandod.start()
        eventually(lambda: client.generation == 2)
        assert lost
        assert memory.epoch != client.epoch
        with pytest.raises(PandoError) as refused:
            client.lookup_blocks([of(kind, keys(3))])
        assert refused.value.reason == "KIND_UNKNOWN"
        assert_holds(memory, kind, keys(3), places)
        fresh = client.attach_memory()
        assert fresh.epoch == client.epoch
        (again,) = client.open_kinds([spec()])
        assert client.lookup_blocks([of(again, keys(3))]).tolist() == [MISSING] * 3
        stored = store(client, fresh, 1, again, keys(3))
        assert_holds(fresh, again, keys(3), stored)


@pytest.mark.parametrize("transport", ["lane", "grpc"])
def test_after_a_restart_nothing_is_reserved_until_the_memory_is_attached_again(
    start_pandod, transport
):
    pandod = start_pandod(**BLOCKS_ONLY)
    with Client(pandod.address, lane=transport == "lane") as client:
        client.attach_memory()
        pandod.kill()
        pandod.start()
        eventually(lambda: client.generation == 2)
        (kind,) = client.open_kinds([spec()])
        for call in (
            lambda: client.acquire_blocks(1, [of(kind, keys(3))]),
            lambda: client.reserve_blocks(1, [of(kind, keys(3))]),
        ):
            with pytest.raises(SessionLostError, match="block memory of session 1"):
                call()
        store(client, client.attach_memory(), 1, kind, keys(3))


def test_a_scheduler_that_attaches_no_memory_reserves_in_every_session(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY)
    with Client(pandod.address) as client:
        for generation in (1, 2):
            eventually(lambda expected=generation: client.generation == expected)
            (kind,) = client.open_kinds([spec()])
            assert are_places(client.reserve_blocks(1, [of(kind, keys(3))])).all()
            pandod.kill()
            pandod.start()


def test_what_a_call_without_an_answer_locked_or_reserved_is_given_back(
    start_pandod, tmp_path
):
    pandod = start_pandod(session_grace=NEVER, **BLOCKS_ONLY)
    with (
        Cutter(tmp_path / "cut.sock", pandod.socket) as cutter,
        Client(pandod.address) as witness,
        Client(cutter.address, lane=False) as client,
    ):
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, keys(2))
        for call in (
            lambda: client.acquire_blocks(2, [of(kind, keys(2))]),
            lambda: client.reserve_blocks(3, [of(kind, keys(2, prompt=2))]),
        ):
            cutter.mute()
            with impatient(client), pytest.raises(DeadlineError):
                call()
            cutter.cut()
            eventually(
                lambda: (
                    (
                        witness.stats().blocks.locks,
                        witness.stats().blocks.reservations,
                    )
                    == (0, 0)
                )
            )
            eventually(lambda: client.lookup_blocks([of(kind, keys(1))]) is not None)
        assert client.generation == 1


def test_while_pandod_is_away_releases_and_publications_wait_for_it(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY)
    with Client(pandod.address, away_after=0.2) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, keys(2))
        client.acquire_blocks(2, [of(kind, keys(2))])
        named = keys(2, prompt=2)
        places = client.reserve_blocks(3, [of(kind, named)])
        os.kill(pandod.pid, signal.SIGSTOP)
        # The threads of pandod stop a little later.
        os.waitid(os.P_PID, pandod.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            with pytest.raises(PandoError):
                client.lookup_blocks([of(kind, keys(2))])
            with pytest.raises(AwayError):
                client.acquire_blocks(4, [of(kind, keys(2))])
            client.release_blocks([2])
            client.publish_blocks(3)
        finally:
            os.kill(pandod.pid, signal.SIGCONT)
        eventually(lambda: not client.is_away)
        eventually(
            lambda: client.lookup_blocks([of(kind, named)]).tolist() == places.tolist()
        )
        eventually(lambda: client.stats().blocks.locks == 0)
