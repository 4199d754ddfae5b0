"""Calls that try to make pandod or other callers pay, with and without credentials."""

import contextlib

import grpc
import pytest
from credentials import calls, folder_of_tokens, guarded, token_of
from eventually import eventually
from many_nodes import publish_chats
from pando_kv import Client, Operator
from pandod_process import PAGE_TOKENS
from process_memory import MEBIBYTE, memory_of
from raw_calls import RawCalls

MATCH_MANY = "pando.v1.PrefixCache/MatchPrefixes"
UNLOCK = "pando.v1.PrefixCache/Unlock"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
# A client that reads little leaves its answers waiting in the server.
TAKES_LITTLE = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_535)]
# EMPTY_QUERY holds nothing, and no message has UNKNOWN_FIELD.
EMPTY_QUERY = b"\x0a\x00"
UNKNOWN_FIELD = b"\xfa\x07\x00"


@pytest.mark.parametrize("method", [MATCH_MANY, UNLOCK, "pando.v1.Admin/GetStats"])
@pytest.mark.parametrize("part", [EMPTY_QUERY, UNKNOWN_FIELD])
def test_a_request_of_millions_of_parts_takes_no_more_than_its_bytes(
    start_pandod, method, part
):
    pandod = start_pandod(max_tokens_per_request=1 << 20)
    with RawCalls(pandod.address) as raw:
        raw.unary("pando.v1.Admin/GetStats")
        before = memory_of(pandod.pid, "VmHWM")
        request = part * (4 * MEBIBYTE // len(part))
        running = [raw.start(method, request) for _ in range(10)]
        assert {call.failure() for call in running} == {
            ("INVALID_ARGUMENT", "INVALID_FIELD")
        }
        # The bound is twice as large because the connection buffers some bytes too.
        most = before + 2 * len(running) * len(request)
        assert memory_of(pandod.pid, "VmHWM") < most


def test_what_is_longer_than_the_tokens_that_are_allowed_is_not_received(start_pandod):
    pandod = start_pandod(max_tokens_per_request=1 << 20)
    with RawCalls(pandod.address) as raw:
        refused = raw.failure(MATCH_MANY, b"\x0a\x00" * (4 * MEBIBYTE))
        assert refused == ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED")


def test_nothing_is_made_of_the_request_of_a_caller_without_a_credential():
    no_request = b"\xff\xff\xff"
    entry = "\n- {name: w, role: worker, token_file: FOLDER/worker.token}"
    with (
        folder_of_tokens() as folder,
        guarded(folder, entry) as pandod,
        calls(pandod, None) as stranger,
        calls(pandod, "worker") as worker,
    ):
        assert token_of("worker")
        refused = stranger.failure(MATCH_MANY, no_request)
        assert refused == ("UNAUTHENTICATED", "NO_CREDENTIAL")
        assert worker.failure(MATCH_MANY, no_request) == ("INTERNAL", "INTERNAL")


def test_dumps_that_nobody_reads_take_a_bounded_memory(start_pandod):
    chats = 20_000
    pandod = start_pandod(pool_pages=7 * chats, layers=1, heads=1, head_size=1)
    with Client(pandod.address) as client, contextlib.ExitStack() as stack:
        publish_chats(client, pandod.address, chats, seed=1)
        before = memory_of(pandod.pid, "VmRSS")
        channel = stack.enter_context(
            grpc.insecure_channel(pandod.address, TAKES_LITTLE)
        )
        dump = channel.unary_stream("/pando.v1.Admin/DumpTree")
        # limit: 100,000
        request = b"\x08\xa0\x8d\x06"
        unread = [dump(request) for _ in range(400)]
        for call in unread:
            stack.callback(call.cancel)
            next(call)
        # Each call has a message or two on its way.
        grown = memory_of(pandod.pid, "VmHWM") - before
        assert grown < 200 * MEBIBYTE
        with Operator(pandod.address) as operator:
            assert len(operator.dump_tree(limit=100_000).nodes) > chats


def test_watchers_of_the_health_are_bounded(start_pandod):
    pandod = start_pandod(max_calls_per_connection=2_000)
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(grpc.insecure_channel(pandod.address)).unary_stream(
            HEALTH_WATCH
        )
        watches = [watch(b"") for _ in range(1024)]
        for call in watches:
            assert next(call) == b"\x08\x01"
        with pytest.raises(grpc.RpcError, match="1024 callers watch"):
            next(watch(b""))
        watches[0].cancel()

        def is_let_in() -> bool:
            another = watch(b"")
            try:
                return next(another) == b"\x08\x01"
            except grpc.RpcError:
                return False
            finally:
                another.cancel()

        eventually(is_let_in)
        for call in watches:
            call.cancel()


def test_sessions_that_use_no_attach_tokens_keep_no_other_from_attaching(start_pandod):
    pandod = start_pandod(attach_token_ttl="1h")
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(RawCalls(pandod.address))
        for _ in range(20):
            session = stack.enter_context(raw.session())
            request = b"\x09" + session.to_bytes(8, "little")
            for _ in range(64):
                raw.unary("pando.v1.PagePool/AttachPool", request)
        with Client(pandod.address) as client, client.attach_pool() as pool:
            assert pool.layout.page_tokens == PAGE_TOKENS
