"""Calls over shared memory answer as gRPC does; those that do not fit use gRPC."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from eventually import eventually
from lanes import handled, needs_lane
from metrics_page import MetricsPage, free_address
from pando_kv import (
    Client,
    Namespace,
    PandoError,
    PrefixQuery,
)
from pando_kv import _pool_calls as pool_calls
from pando_kv._call import Call
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS, POOL_PAGES, serving
from prompts import admit_and_publish, prompt

pytestmark = needs_lane

PAGES_OF_A_LARGE_PROMPT = 2048
LONG = 100.0


# The transport.


def test_a_client_has_a_lane_unless_it_wants_none(pandod):
    with Client(pandod.address) as client, Client(pandod.address, lane=False) as other:
        assert (client.transport, client.why_no_lane) == ("lane", "")
        assert (other.transport, other.why_no_lane) == ("grpc", "lane=False")


def test_over_tcp_there_is_no_lane(tmp_path):
    tcp = free_address()
    with serving(tmp_path, tcp=tcp, tcp_insecure="yes"), Client(tcp) as client:
        assert client.transport == "grpc"
        assert client.why_no_lane == "a lane needs a Unix socket"
        admit_and_publish(client, prompt(1))


def test_a_server_without_lanes_says_so_and_serves_over_grpc(tmp_path):
    with (
        serving(tmp_path, lane_bytes=0) as pandod,
        Client(pandod.address) as client,
    ):
        assert client.transport == "grpc"
        assert "lane-bytes is 0" in client.why_no_lane
        admit_and_publish(client, prompt(1))


def test_who_comes_when_all_lanes_are_taken_is_served_over_grpc(tmp_path):
    with (
        serving(tmp_path, max_lanes=1) as pandod,
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


def test_calls_of_asyncio_that_may_wait_go_by_the_lane_too(tmp_path, http):
    async def admit(pandod):
        async with AsyncClient(pandod.address) as client:
            await client.match_prefix(prompt(1), lock=True, pending_wait=1)

    with serving(tmp_path, http=http) as pandod:
        asyncio.run(admit(pandod))
        assert handled(MetricsPage(http), "MatchPrefix") == {"lane": 1, "grpc": 0}


def test_calls_are_counted_by_their_transport(tmp_path, http):
    with serving(tmp_path, http=http) as pandod:
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
    # The caller owns this array, so the caller can write to it.
    match.reserved_page_ids.sort()
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


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "grpc"])
def test_a_number_that_no_machine_has_room_for_is_refused_by_name(pandod, lane):
    with Client(pandod.address, lane=lane) as client:
        with pytest.raises(ValueError, match=f"pages is {2**64}; must be from 0 to"):
            client.allocate_pages(2**64)
        with pytest.raises(ValueError, match=f"reserve_tokens is {2**70}; must be"):
            client.match_prefix(prompt(1), lock=True, reserve_tokens=2**70)
        with pytest.raises(ValueError, match="pending_wait is nan; must be a number"):
            client.match_prefix(prompt(1), pending_wait=float("nan"))
        assert client.check_invariants() == []


def test_the_rates_of_calls_hold_on_a_lane(tmp_path):
    with (
        serving(tmp_path, max_calls_per_second=5) as pandod,
        Client(pandod.address) as client,
    ):
        assert client.transport == "lane"
        with pytest.raises(PandoError) as raised:
            for _ in range(20):
                client.match_prefix(prompt(1))
        assert raised.value.reason == "RATE_LIMITED"
        assert raised.value.retry_after > 0


# Calls that do not fit.


@pytest.fixture
def small(tmp_path, http):
    """Yields a pandod whose lanes have little room."""
    with serving(
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
        serving(tmp_path, http=http) as pandod,
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
