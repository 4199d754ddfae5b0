"""Lanes whose client or pandod ends, and many threads on one lane."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually
from lanes import needs_lane
from pando_kv import (
    Client,
    PrefixQuery,
    SessionLostError,
    UnavailableError,
)
from pando_kv._lane import OPEN_LANE, ClientLane, open_lane_request
from pandod_process import PAGE_TOKENS, Pandod, serving
from prompts import admit_and_publish, prompt

pytestmark = needs_lane

LONG = 100.0


def test_a_call_that_waits_when_pandod_is_killed_ends(tmp_path):
    with serving(tmp_path) as pandod:
        with Client(pandod.address) as owner, Client(pandod.address) as client:
            owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(
                    client.match_prefix, prompt(1), lock=True, pending_wait=LONG
                )
                eventually(lambda: client.stats().waiting_matches == 1)
                pandod.kill()
                with pytest.raises(UnavailableError):
                    waiting.result(timeout=30)
            assert client.transport == "grpc"


def test_a_client_has_a_lane_of_the_next_pandod(tmp_path):
    with serving(tmp_path) as pandod, Client(pandod.address) as client:
        assert client.transport == "lane"
        epoch = client.epoch
        pandod.kill()
        pandod.start()
        eventually(lambda: client.transport == "lane" and client.epoch != epoch)
        admit_and_publish(client, prompt(1))
        assert client.gauges().epoch == client.epoch


def test_calls_under_way_when_pandod_is_killed_end_and_go_on_with_the_next(tmp_path):
    workers = 4
    served = [0] * workers
    is_over = threading.Event()

    def work(number: int) -> None:
        while not is_over.is_set():
            # Every other kind of error fails the test.
            with contextlib.suppress(UnavailableError, SessionLostError):
                admit_and_publish(client, prompt(3, start=1000 * number))
                served[number] += 1

    def go_on() -> None:
        before = list(served)
        eventually(
            lambda: all(now > then for now, then in zip(served, before, strict=True))
        )
        eventually(lambda: client.transport == "lane")

    with (
        serving(tmp_path) as pandod,
        Client(pandod.address) as client,
        ThreadPoolExecutor(workers) as pool,
    ):
        working = [pool.submit(work, number) for number in range(workers)]
        try:
            for round in range(3):
                go_on()
                time.sleep(0.003 * round)
                pandod.kill()
                pandod.start()
            go_on()
        finally:
            is_over.set()
        for each in working:
            each.result()
        assert client.check_invariants() == []


def lane_in_place_of(worker: Client, pandod: Pandod) -> ClientLane:
    connection = worker._connection
    request = open_lane_request(connection.sessions.current())
    lane = ClientLane(True, pandod.address)
    lane.fetch(connection._exchange_raw(OPEN_LANE, request, LONG), LONG)
    return lane


def test_a_lane_that_pandod_closed_is_none(pandod, client):
    with Client(pandod.address) as worker:
        other = lane_in_place_of(worker, pandod)
        assert other.is_open
        eventually(lambda: worker.transport == "grpc")
        assert worker.why_no_lane == "pandod has closed it"
        admit_and_publish(worker, prompt(1))
        assert worker.gauges().pages.evictable == 1
        other.close("the test is over")


def test_an_answer_that_is_read_when_its_memory_is_gone_is_asked_for_again(tmp_path):
    with serving(tmp_path, max_lanes=1) as pandod, Client(pandod.address) as client:
        admit_and_publish(client, prompt(2))
        batch = client.batch()
        answer = batch.match_prefix(prompt(2))
        batch.begin()
        # pandod answers calls in order, so this answer means that the batch is
        # answered.
        client.match_prefix(prompt(1))
        lane_in_place_of(client, pandod)
        # pandod opens another lane only once it has taken back the first lane's memory.
        eventually(lambda: lane_in_place_of(client, pandod).is_open)
        assert answer.result().matched_tokens == 2 * PAGE_TOKENS


FORKS = """
import os, sys
from pando_kv import Client
with Client(sys.argv[1]) as client:
    child = os.fork()
    if child == 0:
        client._connection.lane.close("the child leaves")
        os._exit(0)
    os.waitpid(child, 0)
    assert client.transport == "lane", client.why_no_lane
    client.match_prefix(range(32))
"""


def test_a_child_that_leaves_keeps_its_parents_lane_open(pandod):
    subprocess.run([sys.executable, "-c", FORKS, pandod.address], check=True)


ENDS_DURING_A_CALL = """
import sys, threading, time
from pando_kv import Client
owner, client = Client(sys.argv[1]), Client(sys.argv[1])
first = owner.match_prefix(range(16), lock=True, reserve_tokens=16)
threading.Thread(
    target=client.match_prefix,
    args=[range(16)],
    kwargs={"lock": True, "pending_wait": 100},
    daemon=True,
).start()
while owner.stats().waiting_matches == 0:
    time.sleep(0.01)

class Slow:
    def __del__(self):
        # Meanwhile the thread asks for the lock of the interpreter that ends.
        time.sleep(0.3)

sys.modules["slow"] = Slow()
"""


def test_a_process_may_end_while_a_daemon_thread_is_in_a_call(pandod):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDS_DURING_A_CALL, pandod.address],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_many_threads_share_one_lane(pandod, client):
    def work(number: int) -> None:
        for step in range(50):
            tokens = prompt(2, start=1000 * number + 100 * (step % 5))
            match = client.match_prefix(tokens, lock=True, reserve_tokens=len(tokens))
            client.insert(
                tokens[match.matched_tokens :],
                match.reserved_page_ids,
                lock=match.lock,
                unlock=True,
            )
            assert client.match_prefixes([PrefixQuery(tokens)])[0].matched_tokens >= 0

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(4)))
    assert client.stats().locks == client.stats().pages.reserved == 0


WORKER = """
import sys
from pando_kv import Client
client = Client(sys.argv[1])
assert client.transport == "lane"
print("ready", flush=True)
while True:
    match = client.match_prefix(range(64), lock=True, reserve_tokens=64)
    with client.batch() as batch:
        batch.insert(range(match.matched_tokens, 64), match.reserved_page_ids,
                     lock=match.lock, unlock=True)
        pages = batch.allocate_pages(3)
    client.free_pages(pages.result())
"""


def test_a_worker_that_is_killed_at_any_moment_leaves_nothing(pandod, client):
    for round in range(10):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, pandod.address], stdout=subprocess.PIPE
        )
        with worker:
            assert worker.stdout.readline() == b"ready\n"
            time.sleep(0.003 * round)
            worker.send_signal(signal.SIGKILL)
        eventually(lambda: (client.stats().locks, client.stats().sessions) == (0, 1))
        pages = client.gauges().pages
        assert (pages.reserved, pages.protected) == (0, 0)
        eventually(lambda: client.gauges().pages.quarantined == 0)
        client.match_prefix(prompt(1))
        assert client.check_invariants() == []


def test_a_worker_that_is_stopped_at_any_moment_holds_up_nobody(pandod, client):
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, pandod.address], stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout.readline() == b"ready\n"
        for round in range(10):
            time.sleep(0.003 * round)
            worker.send_signal(signal.SIGSTOP)
            for seed in range(20):
                admit_and_publish(client, prompt(1, start=1000 + 100 * seed))
            made = client.stats().counters.matches
            worker.send_signal(signal.SIGCONT)
            eventually(lambda made=made: client.stats().counters.matches > made)
        worker.send_signal(signal.SIGKILL)
    assert client.check_invariants() == []
