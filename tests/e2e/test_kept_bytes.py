"""The account of the memory that pandod keeps for each session."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from eventually import eventually
from lanes import handled, needs_lane
from metrics_page import MetricsPage, free_address
from pando_kv import Client, SessionLimitError
from pando_kv._proto.pando.v1 import data_path_pb2, prefix_cache_pb2
from pandod_process import PAGE_TOKENS
from protocol_worker import Answer, ProtocolWorker, protocol_worker
from raw_calls import RawCalls

NEVER = 600_000
LIMIT = 4 << 20
TOKENS = list(range(70_000))
REQUEST_BYTES = 4 * len(TOKENS)
# So many requests together are more than the limit has room for.
CALLS = LIMIT // REQUEST_BYTES + 5
BATCH = "pando.v1.DataPath/Batch"
ANSWER = data_path_pb2.BatchResponse
OVER_LIMIT = ("RESOURCE_EXHAUSTED", "SESSION_LIMIT")


class Account:
    """A pandod with a small limit on kept bytes, and the metric that reports them."""

    def __init__(self, start_pandod: Any) -> None:
        self._http = free_address()
        pandod = start_pandod(http=self._http, max_kept_bytes_per_session=LIMIT)
        self.address = pandod.address

    def page(self) -> MetricsPage:
        return MetricsPage(self._http)

    def bytes(self) -> int:
        return int(self.page().sum("pando_kept_bytes"))

    def waiting(self) -> int:
        return int(self.page().sum("pando_pending_matches"))

    def assert_is_full(self) -> None:
        """Checks that the kept requests leave no room for another one."""
        waiting = self.waiting()
        assert waiting >= 2
        assert waiting * REQUEST_BYTES <= self.bytes() <= LIMIT
        assert self.bytes() * (waiting + 1) > LIMIT * waiting

    @contextlib.contextmanager
    def pending_page(self) -> Iterator[None]:
        """Keeps the first page of the tokens pending until the block ends."""
        with protocol_worker(self.address) as owner:
            owner.admit(TOKENS[:PAGE_TOKENS]).get()
            yield


@pytest.fixture
def account(start_pandod) -> Account:
    return Account(start_pandod)


def wait(worker: ProtocolWorker) -> Any:
    return worker.admit(TOKENS, reserve_tokens=0, pending_wait_ms=NEVER)


def here(calls: list[Any]) -> int:
    return sum(call.is_here() for call in calls)


def test_calls_wait_while_there_is_room_for_their_requests(account):
    with protocol_worker(account.address) as worker:
        with account.pending_page(), protocol_worker(account.address) as other:
            calls = [wait(worker) for _ in range(CALLS)]
            eventually(lambda: here(calls) + account.waiting() == CALLS)
            refused = [call for call in calls if call.is_here()]
            assert {call.failure() for call in refused} == {OVER_LIMIT}
            account.assert_is_full()
            assert worker.stats().locks == 1
            calls.append(wait(other))
            eventually(lambda: here(calls) + account.waiting() == CALLS + 1)
            assert here(calls) == len(refused)
        for call in calls:
            if call not in refused:
                eventually(call.is_here)
        assert account.bytes() == 0


def test_what_waits_counts_no_more_when_its_session_ends(account):
    with account.pending_page():
        with RawCalls(account.address) as raw:
            with raw.session() as session:
                call = wait(ProtocolWorker(raw, session))
                eventually(lambda: account.bytes() >= REQUEST_BYTES)
            assert call.failure() == ("FAILED_PRECONDITION", "SESSION_LOST")
        eventually(lambda: account.bytes() < REQUEST_BYTES)
    eventually(lambda: account.bytes() == 0)


def test_a_caller_that_is_gone_keeps_nothing(account):
    with account.pending_page(), protocol_worker(account.address) as worker:
        before = account.bytes()
        call = wait(worker)
        eventually(lambda: account.waiting() == 1)
        call.call.cancel()
        eventually(lambda: account.bytes() == before)


def test_a_batch_is_kept_whole_for_one_of_its_calls_that_waits(account):
    with account.pending_page(), protocol_worker(account.address) as worker:
        match = prefix_cache_pb2.MatchPrefixRequest
        waits = match(
            session_id=worker.session_id,
            tokens=TOKENS[:PAGE_TOKENS],
            lock=True,
            pending_wait_ms=NEVER,
        )
        batch = data_path_pb2.BatchRequest(
            requests=[
                data_path_pb2.BatchedRequest(match_prefix=waits),
                data_path_pb2.BatchedRequest(match_prefix=match(tokens=TOKENS)),
            ]
        )
        with RawCalls(account.address) as raw:
            calls = []
            # Each call begins once all earlier ones wait or have answers, so none is
            # refused for bytes that another call counts only for a moment.
            while len(calls) < CALLS:
                calls.append(Answer(raw.start(BATCH, batch), ANSWER))
                eventually(lambda: here(calls) + account.waiting() == len(calls))
            account.assert_is_full()
            for answer in [call.get() for call in calls if call.is_here()]:
                assert "max-kept-bytes" in answer.responses[0].error.message
                assert answer.responses[1].HasField("match_prefix")
        eventually(lambda: account.waiting() == 0)
    eventually(lambda: account.bytes() == 0)


@needs_lane
def test_calls_on_a_lane_count_as_over_grpc(account):
    with Client(account.address) as client, ThreadPoolExecutor(CALLS) as threads:
        with account.pending_page():
            calls = [
                threads.submit(
                    client.match_prefix, TOKENS, lock=True, pending_wait=NEVER / 1000
                )
                for _ in range(CALLS)
            ]
            eventually(
                lambda: sum(call.done() for call in calls) + account.waiting() == CALLS
            )
            account.assert_is_full()
            assert "lane" in handled(account.page(), "MatchPrefix")
            for call in calls:
                if call.done():
                    with pytest.raises(
                        SessionLimitError, match=f"{LIMIT}.*max-kept-bytes-per-session"
                    ):
                        call.result()
        for call in calls:
            if call.exception() is None:
                call.result().lock.release()
    eventually(lambda: account.bytes() == 0)


def test_held_prompts_and_answers_count_until_they_are_dropped(account):
    with protocol_worker(account.address) as worker:
        tokens = TOKENS[: 4 * PAGE_TOKENS]
        match = worker.admit(tokens, request_id=7).get()
        answer = account.bytes() - 4 * len(tokens)
        assert answer >= 4 * len(match.reserved_page_ids)
        worker.unlock(match)
        assert account.bytes() == answer
    eventually(lambda: account.bytes() == 0)
