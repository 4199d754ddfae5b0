"""Bad input gives its code and reason, changes nothing and harms no other caller."""

import contextlib
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from bad_requests import (
    ADMIN,
    BAD_REQUESTS,
    CACHE,
    CACHED,
    MAX_TOKENS,
    NEW,
    POOL,
    World,
)
from eventually import eventually
from pando_kv import Client
from pando_kv._proto.pando.v1 import pool_pb2, prefix_cache_pb2, session_pb2
from pandod_process import Pandod, serving
from raw_calls import RawCalls

MAX_CLIENT_NAME_BYTES = 128


@pytest.fixture(scope="module")
def pandod(tmp_path_factory) -> Iterator[Pandod]:
    folder = tmp_path_factory.mktemp("bad")
    with serving(folder, max_tokens_per_request=MAX_TOKENS) as server:
        yield server


@pytest.fixture(scope="module")
def world(pandod) -> Iterator[World]:
    with (
        Client(pandod.address, name="victim") as client,
        Client(pandod.address, name="other") as other,
        RawCalls(pandod.address) as raw,
    ):
        with raw.session() as ended:
            pass
        eventually(lambda: client.stats().sessions == 2)
        sealed = client.allocate_pages(2)
        client.insert(CACHED, sealed)
        match = prefix_cache_pb2.MatchPrefixRequest(tokens=CACHED)
        handle = prefix_cache_pb2.MatchPrefixResponse.FromString(
            raw.unary(f"{CACHE}/MatchPrefix", match)
        ).handle
        lock, released = client.lock(CACHED), client.lock(CACHED)
        released.release()
        with other.lock(CACHED) as others_lock, lock:
            yield World(
                raw=raw,
                session=client.session_id,
                reserved=client.allocate_pages(4).tolist(),
                sealed=sealed.tolist(),
                lock=lock.lock_id,
                other_session=other.session_id,
                others_reserved=other.allocate_pages(2).tolist(),
                others_lock=others_lock.lock_id,
                released_lock=released.lock_id,
                ended_session=ended,
                handle=handle,
            )


@pytest.fixture
def unchanged(world) -> Iterator[None]:
    """Fails if the test has changed anything."""
    before = world.state()
    assert before[1] == b"", "violations"
    yield
    assert world.state() == before


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("bad", BAD_REQUESTS, ids=lambda bad: bad.what)
def test_a_bad_request_is_refused_and_changes_nothing(world, bad):
    refused = world.raw.failure(bad.method, bad.request(world))
    assert refused == (bad.code, bad.reason)


UNARY_METHODS = [
    *(
        f"{CACHE}/{name}"
        for name in (
            "MatchPrefix",
            "MatchPrefixes",
            "Insert",
            "Lock",
            "Unlock",
            "Evict",
        )
    ),
    *(f"{POOL}/{name}" for name in ("DescribePool", "AttachPool")),
    *(f"{POOL}/{name}" for name in ("AllocatePages", "FreePages")),
    *(f"{ADMIN}/{name}" for name in ("GetStats", "Flush", "CheckInvariants")),
]
MALFORMED = {"an endless varint": b"\xff" * 16, "a cut field": b"\x0a\x7f\x01"}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("method", UNARY_METHODS)
def test_a_message_that_cannot_be_parsed_is_refused(world, method):
    for what, request in MALFORMED.items():
        refused = world.raw.failure(method, request)
        assert refused == ("INTERNAL", "INTERNAL"), what


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "request_bytes",
    [b"\x1a\x03abc", b"\x12\x04\x0a\x02\xff\xfe"],
    ids=["a token list of 3 bytes", "a namespace that is not UTF-8"],
)
def test_a_field_that_cannot_be_parsed_is_refused(world, request_bytes):
    refused = world.raw.failure(f"{CACHE}/MatchPrefix", request_bytes)
    assert refused == ("INTERNAL", "INTERNAL")


@pytest.mark.usefixtures("unchanged")
def test_a_method_that_does_not_exist_is_refused(world):
    refused = world.raw.failure(f"{CACHE}/Explode", b"")
    assert refused == ("UNIMPLEMENTED", "UNIMPLEMENTED")


OPEN = "pando.v1.Sessions/Open"


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("first", "code", "reason"),
    [
        (
            session_pb2.OpenSessionRequest(
                client_name="x" * (MAX_CLIENT_NAME_BYTES + 1)
            ),
            "INVALID_ARGUMENT",
            "INVALID_FIELD",
        ),
        (
            session_pb2.OpenSessionRequest(resume_session_id=12345),
            "FAILED_PRECONDITION",
            "SESSION_LOST",
        ),
    ],
    ids=["a client name too long", "a session nobody opened"],
)
def test_a_session_that_cannot_be_opened_is_refused(world, first, code, reason):
    assert world.raw.stream_failure(OPEN, first) == (code, reason)


@pytest.mark.usefixtures("unchanged")
def test_a_stream_without_a_first_message_is_refused(world):
    refused = world.raw.stream_failure(OPEN)
    assert refused == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


@pytest.mark.usefixtures("unchanged")
def test_a_first_message_that_cannot_be_parsed_is_refused(world):
    for what, request in MALFORMED.items():
        refused = world.raw.stream_failure(OPEN, request)
        assert refused == ("INTERNAL", "INTERNAL"), what


# The memory socket needs its own checks: the statistics count neither its tokens nor
# the workers that attach.

GRANTED, BAD_TOKEN = 0, 1


def connect(pandod: Pandod) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(pandod.memory_socket))
    connection.settimeout(30)
    return connection


def show(pandod: Pandod, token: bytes) -> tuple[int, int]:
    """Returns the status that the memory socket answers, and its descriptor count."""
    with connect(pandod) as connection:
        connection.sendall(token)
        data, fds, _, _ = socket.recv_fds(connection, 1024, 8)
        for fd in fds:
            socket.close(fd)
        assert data[:4] == b"PNDO"
        return struct.unpack_from("<I", data, 8)[0], len(fds)


def issue_token(raw: RawCalls, session: int) -> bytes:
    request = pool_pb2.AttachPoolRequest(session_id=session)
    answer = raw.unary(f"{POOL}/AttachPool", request)
    return pool_pb2.AttachPoolResponse.FromString(answer).token


def assert_a_worker_can_attach(pandod: Pandod, world: World) -> None:
    assert show(pandod, issue_token(world.raw, world.session)) == (GRANTED, 1)


@pytest.mark.usefixtures("unchanged")
def test_a_token_is_good_for_one_attach(pandod, world):
    token = issue_token(world.raw, world.session)
    assert show(pandod, token) == (GRANTED, 1)
    assert show(pandod, token) == (BAD_TOKEN, 0)
    assert_a_worker_can_attach(pandod, world)


def test_a_token_expires(start_pandod):
    pandod = start_pandod(attach_token_ttl="100ms")
    with RawCalls(pandod.address) as raw, raw.session() as session:
        token = issue_token(raw, session)
        # The test needs time to pass.
        time.sleep(0.1)
        assert show(pandod, token) == (BAD_TOKEN, 0)


@pytest.mark.usefixtures("unchanged")
def test_a_token_that_was_never_issued_is_refused(pandod, world):
    for token in (bytes(16), b"\xff" * 16, b"GET / HTTP/1.1\r\n"):
        assert show(pandod, token) == (BAD_TOKEN, 0)
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_what_is_sent_after_a_token_is_ignored(pandod, world):
    assert show(pandod, issue_token(world.raw, world.session) + b"x" * 1000) == (
        GRANTED,
        1,
    )
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_silent_peers_are_dropped_and_delay_nobody(pandod, world):
    token = issue_token(world.raw, world.session)
    with connect(pandod) as silent, connect(pandod) as half, connect(pandod) as gone:
        half.sendall(token[:8])
        gone.sendall(token[:8])
        gone.close()
        assert_a_worker_can_attach(pandod, world)
        assert silent.recv(1) == b""
        assert half.recv(1) == b""


@pytest.mark.usefixtures("unchanged")
def test_a_thousand_connections_to_the_memory_socket_delay_nobody(pandod, world):
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connect(pandod))
        assert_a_worker_can_attach(pandod, world)
    assert_a_worker_can_attach(pandod, world)


FLOOD = """
import collections, socket, sys
held = collections.deque(maxlen=500)
while True:
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(sys.argv[1])
    print(flush=True)
"""


@pytest.mark.usefixtures("unchanged")
def test_workers_attach_during_a_flood_of_connections(pandod, world):
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD, pandod.memory_socket], stdout=subprocess.PIPE
    ) as flood:
        try:
            for _ in range(30):
                # The flood is still running.
                assert flood.stdout.readline()
                assert_a_worker_can_attach(pandod, world)
        finally:
            flood.kill()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000,
    ],
    ids=["zeros", "HTTP/1", "HTTP/2 with bad frames"],
)
def test_garbage_on_the_grpc_socket_ends_only_its_own_connection(
    pandod, world, garbage
):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect(str(pandod.socket))
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_half_a_message_on_the_grpc_socket_delays_nobody(pandod, world):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(pandod.socket))
        connection.sendall(b"PRI * HTTP/2.0\r\n")
        assert_a_worker_can_attach(pandod, world)


def test_after_all_of_that_what_was_held_is_still_good(pandod, world):
    insert = world.insert(
        lock_id=world.lock,
        lock_action="LOCK_ACTION_RELOCK",
        page_ids=world.reserved[:2],
    )
    world.raw.unary(f"{CACHE}/Insert", insert)
    with Client(pandod.address) as client:
        assert client.match_prefix(CACHED + NEW).matched_tokens == len(CACHED + NEW)
