"""Jumps of the machine's wall clock: only the times in the log follow them."""

import os
import subprocess
import sys

import pytest
from event_follower import Follower
from eventually import eventually
from pando_kv import Client, PendingOutcome
from pandod_process import Pandod, binary
from prompts import admit_and_publish, prompt
from shifted_clock import ShiftedClock
from worker_process import WorkerProcess

HOUR = 3600.0
JUMPS = [-HOUR, HOUR]
# These programs take an address and a name, and hold a session until their input ends.
HOLDERS = {
    "cpp": [str(binary().with_name("session_holder"))],
    "python": [
        *(sys.executable, "-c"),
        "import sys, pando_kv\n"
        "with pando_kv.Client(sys.argv[1], name=sys.argv[2]):\n"
        "    sys.stdin.read()",
    ],
}


@pytest.fixture
def clock(tmp_path):
    return ShiftedClock(tmp_path)


@pytest.fixture
def pandod(tmp_path, clock):
    server = Pandod(tmp_path, drain_timeout="1s")
    server.start(**clock.environment)
    yield server
    server.close_in_order()


@pytest.mark.parametrize("jump", JUMPS)
def test_events_go_on(pandod, clock, jump):
    with Client(pandod.address) as client, Follower(pandod.address) as follower:
        admit_and_publish(client, prompt(1))
        follower.wait_for_blocks(1)
        clock.set(jump)
        for pages in range(2, 5):
            admit_and_publish(client, prompt(pages))
            follower.wait_for_blocks(pages)


@pytest.mark.parametrize("jump", JUMPS)
def test_sessions_are_lost_after_their_grace(pandod, clock, jump):
    with Client(pandod.address) as client, WorkerProcess(pandod.address) as worker:
        worker.do("lock")
        clock.set(jump)
        worker.kill()
        eventually(lambda: client.stats().counters.sessions_lost == 1)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_wait_for_a_pending_page_ends_in_its_time(pandod, clock, jump):
    tokens = prompt(2)
    with Client(pandod.address) as owner, Client(pandod.address) as waiter:
        held = owner.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        clock.set(jump)
        match = waiter.match_prefix(
            tokens, lock=True, reserve_tokens=tokens.size, pending_wait=0.2
        )
        assert match.pending is PendingOutcome.TIMED_OUT
        match.lock.release()
        held.lock.release()


@pytest.mark.parametrize("jump", JUMPS)
def test_it_stops_in_order(pandod, clock, jump):
    with Client(pandod.address) as client:
        client.match_prefix(prompt(1), lock=True)
        pandod.terminate()
        eventually(lambda: client.draining)
        clock.set(jump)
        assert pandod.wait() == 0


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("client", HOLDERS)
def test_a_client_finds_the_next_pandod(pandod, clock, client, jump):
    holder = subprocess.Popen(
        [*HOLDERS[client], pandod.address, "holder"],
        stdin=subprocess.PIPE,
        env=os.environ | clock.environment,
    )
    with holder:
        eventually(lambda: "holder" in session_names(pandod))
        clock.set(jump)
        pandod.kill()
        pandod.start()
        eventually(lambda: "holder" in session_names(pandod))
        holder.stdin.close()
        assert holder.wait() == 0


def session_names(pandod):
    with Client(pandod.address) as client:
        return [session.client_name for session in client.sessions().items]
