"""Bad requests: each gives its code and reason, changes nothing, harms nobody."""

import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from eventually import eventually
from google.protobuf.message import Message
from pando_kv import Client
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
    types_pb2,
)
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod, serving
from raw_calls import RawCalls

CACHE = "pando.v1.PrefixCache"
POOL = "pando.v1.PagePool"
SESSIONS = "pando.v1.Sessions"
ADMIN = "pando.v1.Admin"

MAX_TOKENS = 1024
MAX_UINT32 = 2**32 - 1
MAX_NAMESPACE_BYTES = 256
MAX_CLIENT_NAME_BYTES = 128
TOKEN_TTL = 0.5

# Two cached pages, and two that are not.
CACHED = list(range(2 * PAGE_TOKENS))
NEW = list(range(1000, 1000 + 2 * PAGE_TOKENS))


@dataclass
class World:
    """What the bad requests are about. None of them changes it."""

    raw: RawCalls
    session: int
    reserved: list[int]
    sealed: list[int]
    lock: int
    other_session: int
    others_reserved: list[int]
    others_lock: int
    released_lock: int
    ended_session: int

    def match(self, **fields) -> Message:
        fields = {"session_id": self.session, "lock": True} | fields
        return prefix_cache_pb2.MatchPrefixRequest(**fields)

    def insert(self, **fields) -> Message:
        """Of two whole pages, which would succeed."""
        fields = {
            "session_id": self.session,
            "tokens": NEW,
            "page_ids": self.reserved[:2],
        } | fields
        return prefix_cache_pb2.InsertRequest(**fields)

    def unlock(self, *locks: int, session: int | None = None) -> Message:
        session = self.session if session is None else session
        return prefix_cache_pb2.UnlockRequest(session_id=session, lock_ids=locks)

    def lock_prefix(self, **fields) -> Message:
        fields = {"session_id": self.session, "tokens": CACHED} | fields
        return prefix_cache_pb2.LockRequest(**fields)

    def free(self, *pages: int, session: int | None = None) -> Message:
        session = self.session if session is None else session
        return pool_pb2.FreePagesRequest(session_id=session, page_ids=pages)

    def allocate(self, pages: int, session: int | None = None) -> Message:
        session = self.session if session is None else session
        return pool_pb2.AllocatePagesRequest(session_id=session, pages=pages)

    def attach(self, **fields) -> Message:
        return pool_pb2.AttachPoolRequest(**({"session_id": self.session} | fields))

    def state(self) -> list[bytes]:
        """All that GetStats knows, but for the count of failures; violations."""
        answer = self.raw.unary(f"{ADMIN}/GetStats")
        stats = admin_pb2.GetStatsResponse.FromString(answer)
        stats.counters.allocation_failures = 0
        violations = self.raw.unary(f"{ADMIN}/CheckInvariants")
        return [stats.SerializeToString(deterministic=True), violations]


@pytest.fixture(scope="module")
def pandod(tmp_path_factory) -> Iterator[Pandod]:
    folder = tmp_path_factory.mktemp("bad")
    options = {"max_tokens_per_request": MAX_TOKENS, "attach_token_ttl": f"{TOKEN_TTL}s"}
    with serving(folder, **options) as server:
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
            )


@pytest.fixture
def unchanged(world) -> Iterator[None]:
    """Fails if the test has changed anything."""
    before = world.state()
    assert before[1] == b"", "violations"
    yield
    assert world.state() == before


@dataclass(frozen=True)
class Bad:
    what: str
    method: str
    request: Callable[[World], Message]
    code: str
    reason: str


def bad_request(what: str, method: str, request, reason: str) -> Bad:
    return Bad(what, method, request, "INVALID_ARGUMENT", reason)


def not_allowed(what: str, method: str, request, reason: str) -> Bad:
    return Bad(what, method, request, "FAILED_PRECONDITION", reason)


def bad_page_lists() -> Iterator[Bad]:
    """Each wrong page in each list of pages that a request can have."""
    out_of_range = {"page 0": 0, "the capacity": POOL_PAGES, "the last id": MAX_UINT32}
    for name, page in out_of_range.items():
        for method, request in lists_with(lambda w, page=page: page):
            what = f"{name} in {method}"
            yield bad_request(what, method.split()[0], request, "PAGE_OUT_OF_RANGE")
    foreign = {
        "a page of another session": lambda w: w.others_reserved[0],
        "a sealed page": lambda w: w.sealed[0],
        "a free page": lambda w: POOL_PAGES - 1,
    }
    for name, page in foreign.items():
        for method, request in lists_with(page):
            what = f"{name} in {method}"
            yield not_allowed(what, method.split()[0], request, "PAGE_NOT_OWNED")
    for method, request in lists_with(lambda w: w.reserved[0]):
        what = f"a page twice in {method}"
        yield bad_request(what, method.split()[0], request, "DUPLICATE_PAGE")


def lists_with(page: Callable[[World], int]):
    """Requests that name reserved page 0, then `page`."""
    yield f"{CACHE}/Insert page_ids", lambda w: w.insert(
        page_ids=[w.reserved[0], page(w)]
    )
    yield f"{CACHE}/Insert free_page_ids", lambda w: w.insert(
        page_ids=w.reserved[2:4], free_page_ids=[w.reserved[0], page(w)]
    )
    yield f"{POOL}/FreePages page_ids", lambda w: w.free(w.reserved[0], page(w))


def requests_of_sessions() -> Iterator[tuple[str, Callable[[World, int], Message]]]:
    yield f"{CACHE}/MatchPrefix", lambda w, s: w.match(session_id=s, tokens=CACHED)
    yield f"{CACHE}/Insert", lambda w, s: w.insert(session_id=s)
    yield f"{CACHE}/Lock", lambda w, s: w.lock_prefix(session_id=s)
    yield f"{CACHE}/Unlock", lambda w, s: w.unlock(w.lock, session=s)
    yield f"{POOL}/AllocatePages", lambda w, s: w.allocate(1, session=s)
    yield f"{POOL}/FreePages", lambda w, s: w.free(w.reserved[0], session=s)
    yield f"{POOL}/AttachPool", lambda w, s: w.attach(session_id=s)


def bad_sessions() -> Iterator[Bad]:
    sessions: dict[str, Callable[[World], int]] = {
        "session 0": lambda w: 0,
        "a session nobody opened": lambda w: w.session ^ 1,
        "a session that has ended": lambda w: w.ended_session,
    }
    for (name, session), (method, request) in itertools.product(
        sessions.items(), requests_of_sessions()
    ):
        yield not_allowed(
            f"{name} in {method}",
            method,
            lambda w, session=session, request=request: request(w, session(w)),
            "SESSION_LOST",
        )


def bad_namespaces() -> Iterator[Bad]:
    too_long = "x" * (MAX_NAMESPACE_BYTES + 1)
    for field in ("extra_key", "cache_salt"):
        ns = types_pb2.Namespace(**{field: too_long})
        for name, request in {
            "MatchPrefix": lambda w, ns=ns: w.match(namespace=ns),
            "Insert": lambda w, ns=ns: w.insert(namespace=ns),
            "Lock": lambda w, ns=ns: w.lock_prefix(namespace=ns),
        }.items():
            what = f"{field} too long in {name}"
            yield bad_request(what, f"{CACHE}/{name}", request, "INVALID_FIELD")
    for what, ns in {
        "another": types_pb2.Namespace(extra_key="lora"),
        "an empty": types_pb2.Namespace(extra_key=""),
    }.items():
        yield bad_request(
            f"{what} namespace than that of the lock",
            f"{CACHE}/Insert",
            lambda w, ns=ns: w.insert(lock_id=w.lock, namespace=ns),
            "NAMESPACE_MISMATCH",
        )


def bad_token_lists() -> Iterator[Bad]:
    tokens = [1] * (MAX_TOKENS + 1)
    for name, request in {
        "MatchPrefix": lambda w: w.match(tokens=tokens),
        "Insert": lambda w: w.insert(tokens=tokens),
        "Lock": lambda w: w.lock_prefix(tokens=tokens),
    }.items():
        what = f"too many tokens in {name}"
        yield bad_request(what, f"{CACHE}/{name}", request, "TOO_MANY_TOKENS")
    for what, pages in {
        "too few pages": lambda w: w.reserved[:1],
        "no pages": lambda w: [],
        "too many pages": lambda w: w.reserved[:3],
    }.items():
        yield bad_request(
            what,
            f"{CACHE}/Insert",
            lambda w, pages=pages: w.insert(page_ids=pages(w)),
            "INVALID_ALIGNMENT",
        )
    yield bad_request(
        "a page for a part of a page",
        f"{CACHE}/Insert",
        lambda w: w.insert(tokens=NEW[:-1]),
        "INVALID_ALIGNMENT",
    )


def bad_locks() -> Iterator[Bad]:
    unlock, insert = f"{CACHE}/Unlock", f"{CACHE}/Insert"
    for what, lock in {
        "a lock nobody took": lambda w: w.lock + 12345,
        "the largest lock id": lambda w: 2**64 - 1,
        "the lock of another session": lambda w: w.others_lock,
        "a lock released before": lambda w: w.released_lock,
    }.items():
        for method, request in {
            unlock: lambda w, lock=lock: w.unlock(w.lock, lock(w)),
            insert: lambda w, lock=lock: w.insert(lock_id=lock(w)),
        }.items():
            yield Bad(f"{what} in {method}", method, request, "NOT_FOUND", "LOCK_UNKNOWN")
    yield Bad(
        "lock 0", unlock, lambda w: w.unlock(w.lock, 0), "NOT_FOUND", "LOCK_UNKNOWN"
    )
    yield Bad(
        "a lock listed twice",
        unlock,
        lambda w: w.unlock(w.lock, w.lock),
        "NOT_FOUND",
        "LOCK_UNKNOWN",
    )
    for name in ("LOCK_ACTION_RELOCK", "LOCK_ACTION_UNLOCK"):
        yield bad_request(
            f"{name} without a lock",
            insert,
            lambda w, name=name: w.insert(lock_action=name),
            "INVALID_FIELD",
        )
    yield bad_request(
        "an unknown lock_action",
        insert,
        lambda w: w.insert(lock_id=w.lock, lock_action=77),
        "INVALID_FIELD",
    )


def bad_sizes() -> Iterator[Bad]:
    match, allocate = f"{CACHE}/MatchPrefix", f"{POOL}/AllocatePages"
    yield bad_request(
        "reserve without lock",
        match,
        lambda w: w.match(lock=False, reserve_tokens=1),
        "INVALID_FIELD",
    )
    for tokens in (POOL_PAGES * PAGE_TOKENS, MAX_UINT32):
        yield Bad(
            f"a reserve of {tokens} tokens",
            match,
            lambda w, tokens=tokens: w.match(reserve_tokens=tokens),
            "RESOURCE_EXHAUSTED",
            "POOL_EXHAUSTED",
        )
    for pages in (POOL_PAGES, MAX_UINT32):
        yield Bad(
            f"an allocation of {pages} pages",
            allocate,
            lambda w, pages=pages: w.allocate(pages),
            "RESOURCE_EXHAUSTED",
            "POOL_EXHAUSTED",
        )
    yield bad_request("no pages", allocate, lambda w: w.allocate(0), "EMPTY_REQUEST")
    yield bad_request("no pages", f"{POOL}/FreePages", World.free, "EMPTY_REQUEST")
    yield bad_request("no locks", f"{CACHE}/Unlock", World.unlock, "EMPTY_REQUEST")
    yield bad_request(
        "a page both published and freed",
        f"{CACHE}/Insert",
        lambda w: w.insert(free_page_ids=w.reserved[:1]),
        "DUPLICATE_PAGE",
    )
    yield not_allowed(
        "a cached page both named in its place and freed",
        f"{CACHE}/Insert",
        lambda w: w.insert(
            tokens=CACHED, page_ids=w.sealed, free_page_ids=w.sealed[:1]
        ),
        "PAGE_NOT_OWNED",
    )
    yield not_allowed(
        "cached pages in each other's place",
        f"{CACHE}/Insert",
        lambda w: w.insert(tokens=CACHED, page_ids=w.sealed[::-1]),
        "PAGE_NOT_OWNED",
    )
    yield Bad(
        "a message over the limit",
        match,
        lambda w: w.match(tokens=[1] * (1 << 20)),
        "RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED",
    )
    yield not_allowed(
        "another fingerprint",
        f"{POOL}/AttachPool",
        lambda w: w.attach(fingerprint=1),
        "LAYOUT_MISMATCH",
    )


BAD = [
    *bad_page_lists(),
    *bad_sessions(),
    *bad_namespaces(),
    *bad_token_lists(),
    *bad_locks(),
    *bad_sizes(),
]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_a_bad_request_is_refused_and_changes_nothing(world, bad):
    refused = world.raw.failure(bad.method, bad.request(world))
    assert refused == (bad.code, bad.reason)


UNARY_METHODS = [
    *(f"{CACHE}/{name}" for name in ("MatchPrefix", "Insert", "Lock", "Unlock", "Evict")),
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


OPEN = f"{SESSIONS}/Open"


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
        assert refused == ("INVALID_ARGUMENT", "INVALID_ARGUMENT"), what


# The memory socket. What it does with a token is not in the statistics, and a
# worker that attaches changes nothing there either.

GRANTED, BAD_TOKEN = 0, 1


def connect(pandod: Pandod) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(pandod.memory_socket))
    connection.settimeout(30)
    return connection


def show(pandod: Pandod, token: bytes) -> tuple[int, int]:
    """The status that the memory socket answers, and how many descriptors."""
    with connect(pandod) as connection:
        connection.sendall(token)
        data, fds, _, _ = socket.recv_fds(connection, 1024, 8)
        for fd in fds:
            socket.close(fd)
        assert data[:4] == b"PNDO"
        return struct.unpack_from("<I", data, 8)[0], len(fds)


def issue_token(world: World) -> bytes:
    answer = world.raw.unary(f"{POOL}/AttachPool", world.attach())
    return pool_pb2.AttachPoolResponse.FromString(answer).token


def assert_a_worker_can_attach(pandod: Pandod, world: World) -> None:
    assert show(pandod, issue_token(world)) == (GRANTED, 1)


@pytest.mark.usefixtures("unchanged")
def test_a_token_is_good_for_one_attach(pandod, world):
    token = issue_token(world)
    assert show(pandod, token) == (GRANTED, 1)
    assert show(pandod, token) == (BAD_TOKEN, 0)
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_a_token_expires(pandod, world):
    token = issue_token(world)
    time.sleep(TOKEN_TTL)  # what is tested is the passing of time
    assert show(pandod, token) == (BAD_TOKEN, 0)
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_a_token_that_was_never_issued_is_refused(pandod, world):
    for token in (bytes(16), b"\xff" * 16, b"GET / HTTP/1.1\r\n"):
        assert show(pandod, token) == (BAD_TOKEN, 0)
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_what_is_sent_after_a_token_is_ignored(pandod, world):
    assert show(pandod, issue_token(world) + b"x" * 1000) == (GRANTED, 1)
    assert_a_worker_can_attach(pandod, world)


@pytest.mark.usefixtures("unchanged")
def test_silent_peers_are_dropped_and_delay_nobody(pandod, world):
    token = issue_token(world)
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
        lock_id=world.lock, lock_action="LOCK_ACTION_RELOCK", page_ids=world.reserved[:2]
    )
    world.raw.unary(f"{CACHE}/Insert", insert)
    with Client(pandod.address) as client:
        assert client.match_prefix(CACHED + NEW).matched_tokens == len(CACHED + NEW)
