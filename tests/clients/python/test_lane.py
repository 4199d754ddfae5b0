"""Calls over shared memory: the same as over gRPC, and what becomes of those that the
lane cannot carry."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import (
    Client,
    InvalidRequestError,
    Namespace,
    PandoError,
    PrefixQuery,
    UnavailableError,
    _codec,
)
from pando_kv import _pool_calls as pool_calls
from pando_kv._call import Call
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod
from prompts import admit_and_publish, prompt

pytestmark = pytest.mark.skipif(
    _codec.native is None, reason=f"{_codec.WHY_NOT_NATIVE}"
)

PAGES_OF_A_LARGE_PROMPT = 2048
LONG = 100.0


@contextlib.contextmanager
def pandod_with(folder, **options):
    server = Pandod(folder, **options)
    server.start()
    try:
        yield server
    finally:
        server.close()


def handled(page: MetricsPage, method: str) -> dict[str, float]:
    """Answers by transport."""
    return page.by("transport", "grpc_server_handled_total", grpc_method=method)


@pytest.fixture
def http():
    return free_address()


@pytest.fixture(params=[True, False], ids=["lane", "grpc"])
def caller(request, pandod):
    """A client on each transport."""
    with Client(pandod.address, name="caller", lane=request.param) as client:
        assert client.transport == ("lane" if request.param else "grpc")
        yield client
        assert client.check_invariants() == []


# Which transport.


def test_a_client_has_a_lane_unless_it_wants_none(pandod):
    with Client(pandod.address) as client, Client(pandod.address, lane=False) as other:
        assert (client.transport, client.why_no_lane) == ("lane", "")
        assert (other.transport, other.why_no_lane) == ("grpc", "lane=False")


def test_over_tcp_there_is_no_lane(tmp_path):
    tcp = free_address()
    with pandod_with(tmp_path, tcp=tcp, tcp_insecure="yes"), Client(tcp) as client:
        assert client.transport == "grpc"
        assert client.why_no_lane == "a lane needs a Unix socket"
        admit_and_publish(client, prompt(1))


def test_a_server_without_lanes_says_so_and_serves_over_grpc(tmp_path):
    with (
        pandod_with(tmp_path, lane_bytes=0) as pandod,
        Client(pandod.address) as client,
    ):
        assert client.transport == "grpc"
        assert "lane-bytes is 0" in client.why_no_lane
        admit_and_publish(client, prompt(1))


def test_who_comes_when_all_lanes_are_taken_is_served_over_grpc(tmp_path):
    with (
        pandod_with(tmp_path, max_lanes=1) as pandod,
        Client(pandod.address) as first,
        Client(pandod.address) as second,
    ):
        assert (first.transport, second.transport) == ("lane", "grpc")
        admit_and_publish(second, prompt(1))
        first.close()
        eventually(lambda: _has_lane(pandod))


def _has_lane(pandod) -> bool:
    with Client(pandod.address) as client:
        return client.transport == "lane"


def test_without_the_native_module_the_client_works_and_says_why(pandod):
    code = f"""
import sys
sys.modules["pando_kv._native"] = None
from pando_kv import Client
with Client({pandod.address!r}) as client:
    assert client.transport == "grpc"
    assert "native module" in client.why_no_lane, client.why_no_lane
    match = client.match_prefix(range(32), lock=True, reserve_tokens=32)
    client.insert(range(32), match.reserved_page_ids, lock=match.lock, unlock=True)
    assert client.match_prefix(range(32)).matched_tokens == 32
    assert client.gauges().pages.evictable == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_calls_are_counted_by_their_transport(tmp_path, http):
    with pandod_with(tmp_path, http=http) as pandod:
        with Client(pandod.address) as client:
            client.match_prefix(prompt(1))
            client.match_prefix(prompt(1))
            client.evict(1)
        with Client(pandod.address, lane=False) as client:
            client.match_prefix(prompt(1))
            with client.batch() as batch:
                batch.match_prefix(prompt(1))
        page = MetricsPage(http)
    assert handled(page, "MatchPrefix") == {"lane": 2, "grpc": 2}
    assert handled(page, "Evict") == {"grpc": 1}
    assert handled(page, "Batch") == {"grpc": 1}


# The same answers, and the same errors.


def test_a_request_is_admitted_and_published(caller):
    done = admit_and_publish(caller, prompt(3))
    assert done.handle.tokens == 3 * PAGE_TOKENS
    longer = prompt(5)
    match = caller.match_prefix(
        longer, after=done.handle, lock=True, reserve_tokens=len(longer)
    )
    assert (match.matched_tokens, match.first_page) == (3 * PAGE_TOKENS, 3)
    assert (len(match.page_ids), len(match.reserved_page_ids)) == (0, 2)
    assert match.page_ids.dtype == match.reserved_page_ids.dtype == np.uint32
    match.reserved_page_ids.sort()  # writable, and the caller's own
    with caller.lock(longer) as lock:
        assert lock.locked_tokens == 3 * PAGE_TOKENS
    caller.insert(
        longer[match.matched_tokens :],
        match.reserved_page_ids,
        lock=match.lock,
        unlock=True,
    )
    scores = caller.match_prefixes(
        [
            PrefixQuery(longer),
            PrefixQuery(longer, max_tokens=PAGE_TOKENS),
            PrefixQuery(longer, Namespace("another")),
            PrefixQuery(longer, after=done.handle),
        ]
    )
    assert [s.matched_tokens // PAGE_TOKENS for s in scores] == [5, 1, 0, 5]


BAD_CALLS = {
    "misaligned": lambda c: c.insert(prompt(2), [1]),
    "not owned": lambda c: c.insert(prompt(1), [1]),
    "page 0": lambda c: c.free_pages([0]),
    "no pages": lambda c: c.allocate_pages(0),
    "too many pages": lambda c: c.allocate_pages(10 * POOL_PAGES),
    "long namespace": lambda c: c.match_prefix([], namespace=Namespace("x" * 257)),
    "wait without lock": lambda c: c.match_prefix(prompt(1), pending_wait=1),
    "long wait": lambda c: c.match_prefix(prompt(1), lock=True, pending_wait=1e6),
    "nothing to free": lambda c: c.free_pages([]),
    "reserve without lock": lambda c: c.match_prefix([], reserve_tokens=16),
}


@pytest.mark.parametrize("bad", BAD_CALLS.values(), ids=BAD_CALLS)
def test_errors_are_the_same_on_both_transports(pandod, bad):
    errors = []
    for lane in (True, False):
        with Client(pandod.address, lane=lane) as client:
            with pytest.raises(PandoError) as raised:
                bad(client)
            errors.append((type(raised.value), raised.value.reason, str(raised.value)))
            assert client.check_invariants() == []
    assert errors[0] == errors[1]


def test_a_number_that_does_not_fit_is_refused_before_it_is_sent(caller):
    with pytest.raises(
        ValueError, match="max_tokens is -1; must be from 0 to 4294967295"
    ):
        caller.match_prefix(prompt(1), max_tokens=-1, lock=True)
    with pytest.raises(ValueError, match="pages is 4294967296"):
        caller.allocate_pages(2**32)
    with pytest.raises(ValueError, match="extra_key is 5; must be a str"):
        caller.match_prefix(prompt(1), namespace=Namespace(5))


def test_the_rates_of_calls_hold_on_a_lane(tmp_path):
    with (
        pandod_with(tmp_path, max_calls_per_second=5) as pandod,
        Client(pandod.address) as client,
    ):
        assert client.transport == "lane"
        with pytest.raises(PandoError) as raised:
            for _ in range(20):
                client.match_prefix(prompt(1))
        assert raised.value.reason == "RATE_LIMITED"
        assert raised.value.retry_after > 0


# What does not fit.


@pytest.fixture
def small(tmp_path, http):
    """A pandod whose lanes have room for little."""
    with pandod_with(
        tmp_path, http=http, lane_bytes=16 << 10, pool_pages=2 * PAGES_OF_A_LARGE_PROMPT
    ) as pandod:
        yield pandod


def test_a_request_that_is_too_large_goes_over_grpc(small, http):
    with Client(small.address) as client:
        large = prompt(PAGES_OF_A_LARGE_PROMPT)
        admit_and_publish(client, large)
        assert client.match_prefix(large).matched_tokens == len(large)
        client.match_prefix(prompt(1))
        assert handled(MetricsPage(http), "MatchPrefix") == {"lane": 1, "grpc": 2}
        assert client.transport == "lane"


def _with_room_for(call: Call, answer_bytes: int) -> Call:
    call.answer_bytes = answer_bytes
    return call


def test_an_answer_that_is_too_large_is_asked_for_again_and_the_call_acts_once(
    pandod, client
):
    call = pool_calls.allocate_pages(client._sessions, 20)
    pages = client._connection.send(_with_room_for(call, 16))
    assert len(set(pages.tolist())) == 20
    assert client.stats().pages.reserved == 20
    assert client.stats().counters.repeated_requests == 1
    client.free_pages(pages)


def test_an_error_that_is_too_large_is_asked_for_again(client):
    call = pool_calls.allocate_pages(client._sessions, 10 * POOL_PAGES)
    with pytest.raises(PandoError, match="POOL_EXHAUSTED"):
        client._connection.send(_with_room_for(call, 0))


def test_more_calls_than_a_lane_holds_go_over_grpc(tmp_path, http):
    with (
        pandod_with(tmp_path, http=http) as pandod,
        Client(pandod.address) as owner,
        Client(pandod.address) as client,
        ThreadPoolExecutor(100) as pool,
    ):
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        waiting = [
            pool.submit(
                client.match_prefix,
                prompt(1),
                lock=True,
                reserve_tokens=PAGE_TOKENS,
                pending_wait=LONG,
            )
            for _ in range(80)
        ]
        eventually(lambda: client.stats().waiting_matches == 80)
        owner.insert(prompt(1), first.reserved_page_ids, lock=first.lock, unlock=True)
        for answer in waiting:
            assert answer.result().matched_tokens == PAGE_TOKENS
            answer.result().lock.release()
        by_transport = handled(MetricsPage(http), "MatchPrefix")
        assert by_transport["lane"] == 64 + 1
        assert by_transport["grpc"] == 16


# Waiting.


def test_answers_come_in_another_order_than_calls(pandod, client):
    with Client(pandod.address) as owner, ThreadPoolExecutor(1) as pool:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        waiting = pool.submit(
            client.match_prefix,
            prompt(1),
            lock=True,
            reserve_tokens=PAGE_TOKENS,
            pending_wait=LONG,
        )
        eventually(lambda: client.stats().waiting_matches == 1)
        for _ in range(100):
            client.match_prefix(prompt(2))
        assert not waiting.done()
        first.lock.release()
        waiting.result().lock.release()


def test_other_threads_run_while_a_call_waits(pandod, client):
    with Client(pandod.address) as owner, ThreadPoolExecutor(1) as pool:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        waiting = pool.submit(
            client.match_prefix, prompt(1), lock=True, pending_wait=LONG
        )
        eventually(lambda: client.stats().waiting_matches == 1)
        first.lock.release()
        waiting.result().lock.release()


def test_a_wait_ends_with_its_time(client, pandod):
    with Client(pandod.address) as owner:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        match = client.match_prefix(prompt(1), lock=True, pending_wait=0.05)
        assert match.pending.name == "TIMED_OUT"
        match.lock.release()
        first.lock.release()


def test_a_call_can_be_interrupted(pandod):
    code = f"""
import signal, threading, _thread, time
from pando_kv import Client
# Who runs in the background is started with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client({pandod.address!r}) as owner, Client({pandod.address!r}) as client:
    owner.match_prefix(range(16), lock=True, reserve_tokens=16)
    def interrupt():
        while client.stats().waiting_matches == 0:
            time.sleep(0.01)
        _thread.interrupt_main()
    threading.Thread(target=interrupt).start()
    try:
        client.match_prefix(range(16), lock=True, pending_wait=500)
    except KeyboardInterrupt:
        print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_tasks_wait_for_many_answers_at_once(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            assert worker.transport == "lane"
            first = client.match_prefix(
                prompt(1), lock=True, reserve_tokens=PAGE_TOKENS
            )
            waiting = [
                asyncio.create_task(
                    worker.match_prefix(prompt(1), lock=True, pending_wait=LONG)
                )
                for _ in range(30)
            ]
            while client.stats().waiting_matches < 30:
                await asyncio.sleep(0.01)
            # The loop runs meanwhile, and other calls are answered.
            assert (await worker.match_prefix(prompt(2))).matched_tokens == 0
            client.insert(
                prompt(1), first.reserved_page_ids, lock=first.lock, unlock=True
            )
            for match in await asyncio.gather(*waiting):
                assert match.matched_tokens == PAGE_TOKENS
                await match.lock.release()
            assert (await worker.gauges()).pages.protected == 0

    asyncio.run(run())


def test_what_a_cancelled_task_was_to_bring_is_given_back(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            first = client.match_prefix(
                prompt(1), lock=True, reserve_tokens=PAGE_TOKENS
            )
            task = asyncio.create_task(
                worker.match_prefix(
                    prompt(1), lock=True, reserve_tokens=32, pending_wait=LONG
                )
            )
            while client.stats().waiting_matches == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            first.lock.release()
            client.free_pages(first.reserved_page_ids)
            await asyncio.to_thread(
                eventually,
                lambda: (
                    (client.gauges().pages.reserved, client.stats().locks) == (0, 0)
                ),
            )

    asyncio.run(run())


# Batches.


def test_the_calls_of_a_batch_are_made_in_order_with_an_answer_each(caller):
    with caller.batch() as batch:
        pages = batch.allocate_pages(2)
        bad = batch.free_pages([0])
        match = batch.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        with pytest.raises(RuntimeError, match="not sent"):
            pages.result()
    with pytest.raises(InvalidRequestError):
        bad.result()
    taken = match.result()
    assert len(pages.result()) == 2
    with caller.batch() as batch:
        done = batch.insert(
            prompt(1), taken.reserved_page_ids, lock=taken.lock, unlock=True
        )
        batch.free_pages(pages.result())
        again = batch.match_prefix(prompt(1))
        lock = batch.lock(prompt(1))
    assert done.result().existing_tokens == 0
    assert again.result().matched_tokens == PAGE_TOKENS
    with caller.batch() as batch:
        released = batch.unlock(lock.result())
        nothing = batch.unlock(lock.result())
    assert released.result() is nothing.result() is None
    pages = caller.gauges().pages
    assert (pages.reserved, pages.protected, pages.evictable) == (0, 0, 1)


def test_a_batch_may_be_larger_than_a_lane_and_a_call_of_grpc(caller):
    with caller.batch() as batch:
        answers = [batch.match_prefix(prompt(1, i)) for i in range(600)]
    assert [answer.result().matched_tokens for answer in answers] == [0] * 600


def test_a_call_of_a_batch_may_wait(pandod, caller):
    with Client(pandod.address) as owner:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        threading.Timer(0.1, first.lock.release).start()
        with caller.batch() as batch:
            waiting = batch.match_prefix(prompt(1), lock=True, pending_wait=LONG)
            other = batch.match_prefix(prompt(2))
        assert waiting.result().pending.name == "GIVEN_UP"
        assert other.result().matched_tokens == 0
        waiting.result().lock.release()


def test_a_batch_that_is_given_up_sends_nothing(caller):
    with caller.lock([]) as lock:
        with contextlib.suppress(ZeroDivisionError), caller.batch() as batch:
            pages = batch.allocate_pages(1)
            batch.unlock(lock)
            raise ZeroDivisionError
        assert lock.held
        with pytest.raises(RuntimeError, match="not sent"):
            pages.result()
    assert caller.gauges().pages.reserved == 0


def test_a_handle_that_is_gone_costs_a_call_of_a_batch_nothing(caller):
    done = admit_and_publish(caller, prompt(2))
    caller.evict(2)
    with caller.batch() as batch:
        match = batch.match_prefix(prompt(3), after=done.handle)
    assert (match.result().matched_tokens, match.result().first_page) == (0, 0)


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "grpc"])
def test_tasks_send_batches_too(pandod, client, lane):
    async def run():
        async with AsyncClient(pandod.address, lane=lane) as worker:
            async with worker.batch() as batch:
                pages = batch.allocate_pages(2)
                bad = batch.allocate_pages(0)
            with pytest.raises(InvalidRequestError):
                bad.result()
            await worker.free_pages(pages.result())

    asyncio.run(run())


# Gauges.


def test_gauges_are_what_stats_say(caller):
    admit_and_publish(caller, prompt(3))
    caller.allocate_pages(2)
    lock = caller.lock(prompt(1))
    gauges, stats = caller.gauges(), caller.stats()
    assert gauges.pages == stats.pages
    assert gauges.epoch == stats.epoch
    assert (gauges.draining, gauges.eviction_policy) == (False, "lru")
    caller.set_eviction_policy("slru")
    assert caller.gauges().eviction_policy == "slru"
    lock.release()


def test_gauges_follow_other_clients_and_the_end_of_a_worker(pandod, client):
    with Client(pandod.address) as other:
        other.allocate_pages(5)
        assert client.gauges().pages.reserved == 5
    eventually(lambda: client.gauges().pages.reserved == 0)


def test_gauges_say_that_the_server_drains(pandod, client):
    client.drain()
    eventually(lambda: client.gauges().draining)


# Ends.


def test_a_call_that_waits_when_pandod_is_killed_ends(tmp_path):
    with pandod_with(tmp_path) as pandod:
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
    with pandod_with(tmp_path) as pandod, Client(pandod.address) as client:
        assert client.transport == "lane"
        epoch = client.epoch
        pandod.kill()
        pandod.start()
        eventually(lambda: client.transport == "lane" and client.epoch != epoch)
        admit_and_publish(client, prompt(1))
        assert client.gauges().epoch == client.epoch


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
