"""Limits of one session or connection, and the errors that name them."""

import itertools
import os
import signal
import time
from contextlib import ExitStack, closing

import grpc
import pytest
from eventually import eventually
from pando_kv import Client, PandoError, RateLimitedError, SessionLimitError
from pando_kv._proto.pando.v1 import pool_pb2, prefix_cache_pb2, session_pb2
from pandod_process import PAGE_TOKENS
from raw_calls import RawCalls

TOKENS = list(range(2 * PAGE_TOKENS))
ATTACH = "pando.v1.PagePool/AttachPool"
MATCH = "pando.v1.PrefixCache/MatchPrefix"
STATS = "pando.v1.Admin/GetStats"
OPEN_SESSION = "pando.v1.Sessions/Open"
OVER_LIMIT = ("RESOURCE_EXHAUSTED", "SESSION_LIMIT")


def test_a_connection_has_a_limited_number_of_sessions(start_pandod):
    pandod = start_pandod()
    request = session_pb2.OpenSessionRequest(client_name="many")
    with (
        RawCalls(pandod.address) as one,
        RawCalls(pandod.address) as other,
        ExitStack() as open_sessions,
    ):
        for _ in range(63):
            open_sessions.enter_context(one.session())
        with one.session():
            refused = one.stream_failure(OPEN_SESSION, request)
            assert refused == ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED")
        with other.session():
            pass
        # One session of the connection has ended.
        eventually(lambda: is_let_in(one, request))


def is_let_in(calls: RawCalls, request: session_pb2.OpenSessionRequest) -> bool:
    with closing(calls.open_stream(OPEN_SESSION)) as stream:
        stream.send(request)
        try:
            return bool(stream.next())
        except grpc.RpcError:
            return False


def test_a_lock_too_many_is_refused_and_changes_nothing(start_pandod):
    pandod = start_pandod(max_locks_per_session=2)
    with Client(pandod.address) as client, Client(pandod.address) as other:
        first, _ = client.lock(TOKENS), client.lock(TOKENS)
        with pytest.raises(
            SessionLimitError, match="2 locks; .*--max-locks-per-session"
        ):
            client.match_prefix(TOKENS, lock=True, reserve_tokens=len(TOKENS))
        assert client.stats().locks == 2
        assert client.stats().pages.reserved == 0
        other.lock(TOKENS)
        first.release()
        client.lock(TOKENS)


def test_a_reserved_page_too_many_is_refused(start_pandod):
    pandod = start_pandod(max_reserved_pages_per_session=5)
    with Client(pandod.address) as client, Client(pandod.address) as other:
        pages = client.allocate_pages(4)
        with pytest.raises(
            SessionLimitError, match="limit is 5 .--max-reserved-pages-per-session"
        ):
            client.allocate_pages(2)
        other.allocate_pages(5)
        client.free_pages(pages)
        client.allocate_pages(5)


def test_limits_of_sessions_change_live(start_pandod, tmp_path):
    config = tmp_path / "pandod.yaml"
    config.write_text("max-locks-per-session: 1\n")
    pandod = start_pandod(config=config)
    with Client(pandod.address) as client:
        client.lock(TOKENS)
        config.write_text("max-locks-per-session: 2\n")
        os.kill(pandod.pid, signal.SIGHUP)

        def is_locked() -> bool:
            try:
                return client.lock(TOKENS).held
            except SessionLimitError:
                return False

        eventually(is_locked)


def test_unused_attach_tokens_are_limited(start_pandod):
    pandod = start_pandod(max_attach_tokens_per_session=2, attach_token_ttl="1h")
    with RawCalls(pandod.address) as raw, raw.session() as one, raw.session() as two:
        request = pool_pb2.AttachPoolRequest(session_id=one)
        raw.unary(ATTACH, request)
        raw.unary(ATTACH, request)
        assert raw.failure(ATTACH, request) == OVER_LIMIT
        raw.unary(ATTACH, pool_pb2.AttachPoolRequest(session_id=two))


def test_tokens_that_are_used_or_too_old_do_not_count(start_pandod):
    pandod = start_pandod(max_attach_tokens_per_session=1, attach_token_ttl="100ms")
    with Client(pandod.address) as client:
        for _ in range(3):
            client.attach_pool().close()
    with RawCalls(pandod.address) as raw, raw.session() as session:
        request = pool_pb2.AttachPoolRequest(session_id=session)
        raw.unary(ATTACH, request)
        eventually(lambda: not raw.start(ATTACH, request).has_failed())


def limited(client: Client) -> RateLimitedError:
    """Calls until pandod refuses a call, and returns the error."""
    for _ in range(10_000):
        try:
            client.match_prefix(TOKENS)
        except RateLimitedError as error:
            return error
    raise AssertionError("it was never refused")


def test_who_calls_too_often_is_told_when_to_call_again(start_pandod):
    pandod = start_pandod(max_calls_per_second=10)
    with Client(pandod.address) as client, Client(pandod.address) as other:
        error = limited(client)
        assert error.reason == "RATE_LIMITED"
        assert "max-calls-per-second, which is 10" in error.message
        assert 0 < error.retry_after <= 0.1
        other.match_prefix(TOKENS)
        # A worker waits so long when pandod tells it to.
        time.sleep(error.retry_after)
        client.match_prefix(TOKENS)


def test_what_is_given_back_is_never_refused(start_pandod):
    pandod = start_pandod(max_calls_per_second=2)
    with Client(pandod.address) as client:
        pages = client.allocate_pages(2)
        limited(client)
        for page in pages:
            client.free_pages([page])
        assert client.stats().pages.reserved == 0


def test_calls_without_a_session_that_is_open_count_by_their_connection(start_pandod):
    pandod = start_pandod(max_calls_per_second=1)
    ids = itertools.count()

    def is_limited(raw: RawCalls) -> bool:
        request = prefix_cache_pb2.MatchPrefixRequest(
            tokens=TOKENS, session_id=next(ids)
        )
        call = raw.start(MATCH, request)
        return call.has_failed() and call.failure()[1] == "RATE_LIMITED"

    with RawCalls(pandod.address) as one, RawCalls(pandod.address) as two:
        assert not is_limited(one)
        eventually(lambda: is_limited(one))
        assert not is_limited(two)


def test_what_names_no_session_is_not_held_up_by_one_that_does(start_pandod):
    pandod = start_pandod(max_calls_per_second=1)
    with Client(pandod.address) as client:
        limited(client)
        for _ in range(20):
            client.stats()
        with RawCalls(pandod.address) as raw:
            raw.unary(MATCH, prefix_cache_pb2.MatchPrefixRequest(tokens=TOKENS))


def test_calls_over_those_of_a_connection_wait_in_the_client(start_pandod):
    pandod = start_pandod(max_calls_per_connection=2)
    with RawCalls(pandod.address) as raw, RawCalls(pandod.address) as other:
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(raw.session())
            waiting = raw.start(STATS, b"")
            for _ in range(20):
                other.unary(STATS)
            assert not waiting.is_done()
        waiting.answer()


def test_the_size_of_messages_follows_the_tokens_that_one_may_carry(start_pandod):
    pandod = start_pandod(max_tokens_per_request=1000)

    def failure(tokens: int) -> tuple[str, str]:
        request = prefix_cache_pb2.MatchPrefixRequest(tokens=range(tokens))
        with RawCalls(pandod.address) as raw:
            return raw.failure(MATCH, request)

    assert failure(1001) == ("INVALID_ARGUMENT", "TOO_MANY_TOKENS")
    assert failure(300_000) == ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED")


def test_a_message_of_as_many_tokens_as_by_default_may_be_is_taken(start_pandod):
    with Client(start_pandod().address, timeout=60) as client:
        tokens = range(1_048_576)
        assert client.match_prefix(list(tokens)).matched_tokens == 0
        with pytest.raises(PandoError, match="1048577"):
            client.match_prefix([*tokens, 0])
