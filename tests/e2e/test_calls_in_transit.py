"""Connections whose requests do not end, or whose answers are not read."""

import pytest
from process_memory import MEBIBYTE, memory_of
from raw_calls import RawCalls
from raw_http2 import RawHttp2

CHECK = "grpc.health.v1.Health/Check"
MATCH_MANY = "pando.v1.PrefixCache/MatchPrefixes"
STATS = "pando.v1.Admin/GetStats"
DUMP = "pando.v1.Admin/DumpTree"
OPEN = "pando.v1.Sessions/Open"
# As many as are in transit at once, twice and a half.
MANY = 40
MOST_UNREAD = 64 << 10


def path_of(pandod) -> str:
    return pandod.address.removeprefix("unix:")


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


@pytest.mark.parametrize("is_whole", [True, False])
def test_no_more_than_the_first_bytes_of_requests_that_wait_are_received(
    start_pandod, is_whole
):
    pandod = start_pandod(max_tokens_per_request=1 << 20)
    request = b"\x0a\x00" * MEBIBYTE
    in_transit = 16
    with RawHttp2(path_of(pandod)) as hostile:
        before = memory_of(pandod.pid, "VmHWM")
        for _ in range(in_transit):
            hostile.start(MATCH_MANY, b"", is_whole=False)
        taken = [
            hostile.start(MATCH_MANY, request, is_whole=is_whole) for _ in range(2)
        ]
        assert max(taken) < MOST_UNREAD
        assert memory_of(pandod.pid, "VmHWM") - before < 8 * MEBIBYTE
