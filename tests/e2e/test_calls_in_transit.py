"""Connections with requests that do not end, or with answers that are not read."""

import contextlib

import grpc
import pytest
from eventually import eventually
from pando_kv import Client, Operator
from pando_kv._proto.pando.v1.prefix_cache_pb2 import MatchPrefixRequest
from pandod_process import PAGE_TOKENS, SERVING
from process_memory import MEBIBYTE, memory_of
from raw_calls import RawCalls
from raw_http2 import RawHttp2

CHECK = "grpc.health.v1.Health/Check"
MATCH = "pando.v1.PrefixCache/MatchPrefix"
MATCH_MANY = "pando.v1.PrefixCache/MatchPrefixes"
STATS = "pando.v1.Admin/GetStats"
DUMP = "pando.v1.Admin/DumpTree"
OPEN = "pando.v1.Sessions/Open"
# A connection has at most IN_TRANSIT calls in transit; MANY is more than twice that.
IN_TRANSIT = 16
MANY = 40
WATCH = "grpc.health.v1.Health/Watch"
MOST_UNREAD = 64 << 10


def path_of(pandod) -> str:
    return pandod.address.removeprefix("unix:")


def fill(hostile: RawHttp2) -> None:
    """Fills the connection with requests, so pandod leaves its later calls unread."""
    for _ in range(IN_TRANSIT):
        hostile.start(MATCH_MANY, b"", is_whole=False)


def start_waiting(late: RawHttp2, session: int, prompt: list[int]) -> None:
    """Starts MANY admissions that wait for another worker to compute the prompt."""
    for request_id in range(1, MANY + 1):
        request = MatchPrefixRequest(
            session_id=session,
            tokens=prompt,
            lock=True,
            pending_wait_ms=600_000,
            request_id=request_id,
        )
        late.start(MATCH, request.SerializeToString())


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("method", [CHECK, STATS, DUMP, OPEN])
def test_calls_that_are_not_read_delay_no_other_connection(
    start_pandod, method, is_whole
):
    pandod = start_pandod()
    with RawHttp2(path_of(pandod)) as hostile, RawCalls(pandod.address) as other:
        for _ in range(MANY):
            hostile.start(method, b"", is_whole=is_whole)
        for each in (CHECK, STATS):
            other.unary(each)
        with other.session():
            pass


def test_answers_that_are_read_late_all_come(start_pandod):
    pandod = start_pandod()
    with RawHttp2(path_of(pandod)) as late:
        for _ in range(MANY):
            late.start(STATS, b"")
        late.read_answers()
        late.await_ended(MANY)
        assert len(late.received) == MANY
        assert len(set(late.received.values())) == 1


def test_calls_that_have_waited_are_answered_as_their_answers_are_read(start_pandod):
    pandod = start_pandod()
    prompt = list(range(PAGE_TOKENS))
    with (
        RawHttp2(path_of(pandod)) as late,
        RawCalls(pandod.address) as sessions,
        sessions.session() as session,
        Client(pandod.address) as computing,
    ):
        match = computing.match_prefix(prompt, lock=True, reserve_tokens=PAGE_TOKENS)
        start_waiting(late, session, prompt)
        eventually(lambda: computing.stats().waiting_matches == MANY)
        computing.insert((), match.reserved_page_ids, lock=match.lock, prompt_tokens=16)
        # The worker that computed it and each answered admission hold a lock.
        eventually(lambda: computing.stats().locks == 1 + IN_TRANSIT)
        late.read_answers()
        late.await_ended(MANY)
        assert len(late.received) == MANY


def test_calls_that_have_waited_and_are_cut_off_before_their_answers_end(start_pandod):
    pandod = start_pandod()
    prompt = list(range(PAGE_TOKENS))
    with (
        RawCalls(pandod.address) as sessions,
        sessions.session() as session,
        Client(pandod.address) as computing,
    ):
        match = computing.match_prefix(prompt, lock=True, reserve_tokens=PAGE_TOKENS)
        with RawHttp2(path_of(pandod)) as late:
            start_waiting(late, session, prompt)
            eventually(lambda: computing.stats().waiting_matches == MANY)
            computing.insert(
                (), match.reserved_page_ids, lock=match.lock, prompt_tokens=16
            )
            eventually(lambda: computing.stats().locks == 1 + IN_TRANSIT)
        # No other call is carried out, and the next connection has all its room.
        with RawHttp2(path_of(pandod)) as another:
            for _ in range(MANY):
                another.start(STATS, b"")
            another.read_answers()
            another.await_ended(MANY)
        assert computing.stats().locks == 1 + IN_TRANSIT


@pytest.mark.parametrize("is_whole", [True, False])
def test_no_more_than_the_first_bytes_of_requests_that_wait_are_received(
    start_pandod, is_whole
):
    pandod = start_pandod(max_tokens_per_request=1 << 20)
    request = b"\x0a\x00" * MEBIBYTE
    with RawHttp2(path_of(pandod)) as hostile:
        fill(hostile)
        before = memory_of(pandod.pid, "VmHWM")
        taken = [
            hostile.start(MATCH_MANY, request, is_whole=is_whole) for _ in range(2)
        ]
        assert max(taken) < MOST_UNREAD
        assert memory_of(pandod.pid, "VmHWM") - before < 8 * MEBIBYTE


@pytest.mark.parametrize("method", [STATS, DUMP, OPEN, WATCH])
def test_calls_that_are_cancelled_before_they_are_read_leave_nothing(
    start_pandod, method
):
    pandod = start_pandod()
    with RawHttp2(path_of(pandod)) as hostile, RawCalls(pandod.address) as other:
        fill(hostile)
        for _ in range(30):
            for _ in range(500):
                hostile.start(method, b"", is_whole=False)
                hostile.cancel_last()
            # This call lets pandod catch up, so at most 500 calls are on their way.
            other.unary(STATS)
        # Keeping all 15,000 calls at 17 KiB each would take about 250 MiB.
        assert memory_of(pandod.pid, "VmRSS") < 160 * MEBIBYTE


def test_watchers_that_have_said_nothing_keep_no_other_from_watching(start_pandod):
    pandod = start_pandod()
    with RawHttp2(path_of(pandod)) as hostile, contextlib.ExitStack() as stack:
        fill(hostile)
        for _ in range(900):
            hostile.start(WATCH, b"", is_whole=False)
        watch = stack.enter_context(grpc.insecure_channel(pandod.address)).unary_stream(
            f"/{WATCH}"
        )
        watches = [watch(b"") for _ in range(200)]
        for call in watches:
            stack.callback(call.cancel)
            assert next(call) == SERVING


def test_a_watcher_that_has_said_nothing_is_told_nothing_at_a_drain(start_pandod):
    pandod = start_pandod()
    with RawHttp2(path_of(pandod)) as silent:
        silent.start(WATCH, b"", is_whole=False)
        silent.read_answers()
        with Operator(pandod.address) as operator:
            operator.drain(exit=True)
        pandod.wait()
        assert not silent.received
