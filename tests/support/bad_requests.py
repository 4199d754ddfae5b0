"""A table of requests that pandod must refuse, and the state that they refer to."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from google.protobuf.message import Message
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    pool_pb2,
    prefix_cache_pb2,
    types_pb2,
)
from pandod_process import PAGE_TOKENS, POOL_PAGES
from raw_calls import RawCalls

CACHE = "pando.v1.PrefixCache"
POOL = "pando.v1.PagePool"
ADMIN = "pando.v1.Admin"

MAX_TOKENS = 1024
MAX_UINT32 = 2**32 - 1
MAX_NAMESPACE_BYTES = 256
MAX_PENDING_WAIT_MS = 600_000
MAX_QUERIES = 4096

# CACHED is two cached pages of tokens; no page of NEW is cached.
CACHED = list(range(2 * PAGE_TOKENS))
NEW = list(range(1000, 1000 + 2 * PAGE_TOKENS))


@dataclass
class World:
    """The state of one pandod that the bad requests refer to. No request changes it."""

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
    # A handle of the end of CACHED.
    handle: types_pb2.PrefixHandle

    def match(self, **fields) -> Message:
        fields = {"session_id": self.session, "lock": True} | fields
        return prefix_cache_pb2.MatchPrefixRequest(**fields)

    def insert(self, **fields) -> Message:
        """Makes an insert of two whole pages, which would succeed unchanged."""
        fields = {
            "session_id": self.session,
            "tokens": NEW,
            "page_ids": self.reserved[:2],
        } | fields
        return prefix_cache_pb2.InsertRequest(**fields)

    def score(self, *queries: dict) -> Message:
        return prefix_cache_pb2.MatchPrefixesRequest(queries=queries)

    def handle_with(self, **fields: int) -> types_pb2.PrefixHandle:
        """Returns a copy of the handle in which the given fields are replaced."""
        of = {name: getattr(self.handle, name) for name in ("epoch", "node", "tokens")}
        return types_pb2.PrefixHandle(**(of | fields))

    def unlock(self, *locks: int, session: int | None = None) -> Message:
        session = self.session if session is None else session
        return prefix_cache_pb2.UnlockRequest(session_id=session, lock_ids=locks)

    def lock_prefix(self, **fields) -> Message:
        fields = {"session_id": self.session, "tokens": CACHED} | fields
        return prefix_cache_pb2.LockRequest(**fields)

    def free(self, *pages: int, session: int | None = None) -> Message:
        session = self.session if session is None else session
        return pool_pb2.FreePagesRequest(session_id=session, page_ids=pages)

    def allocate(self, pages: int, session: int | None = None, **fields) -> Message:
        session = self.session if session is None else session
        return pool_pb2.AllocatePagesRequest(session_id=session, pages=pages, **fields)

    def attach(self, **fields) -> Message:
        return pool_pb2.AttachPoolRequest(**({"session_id": self.session} | fields))

    def state(self) -> list[bytes]:
        """Returns GetStats without its allocation failures, and all violations."""
        answer = self.raw.unary(f"{ADMIN}/GetStats")
        stats = admin_pb2.GetStatsResponse.FromString(answer)
        stats.counters.allocation_failures = 0
        violations = self.raw.unary(f"{ADMIN}/CheckInvariants")
        return [stats.SerializeToString(deterministic=True), violations]


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
    """Yields each kind of wrong page in each list of pages that a request can have."""
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
    """Yields requests whose list of pages is reserved page 0, followed by `page`."""
    yield (
        f"{CACHE}/Insert page_ids",
        lambda w: w.insert(page_ids=[w.reserved[0], page(w)]),
    )
    yield (
        f"{CACHE}/Insert free_page_ids",
        lambda w: w.insert(
            page_ids=w.reserved[2:4], free_page_ids=[w.reserved[0], page(w)]
        ),
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
            "MatchPrefixes": lambda w, ns=ns: w.score({}, {"namespace": ns}),
        }.items():
            what = f"{field} too long in {name}"
            yield bad_request(what, f"{CACHE}/{name}", request, "INVALID_FIELD")
        yield bad_request(
            f"{field} too long in AllocatePages",
            f"{POOL}/AllocatePages",
            lambda w, ns=ns: w.allocate(1, namespace=ns),
            "INVALID_FIELD",
        )
    for what, ns in {
        "another": types_pb2.Namespace(extra_key="lora"),
        "an empty": types_pb2.Namespace(extra_key=""),
        "a bigram": types_pb2.Namespace(bigram=True),
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
        "MatchPrefixes": lambda w: w.score({"tokens": tokens[1:]}, {"tokens": [1]}),
    }.items():
        what = f"too many tokens in {name}"
        yield bad_request(what, f"{CACHE}/{name}", request, "TOO_MANY_TOKENS")
    yield bad_request(
        "too many queries",
        f"{CACHE}/MatchPrefixes",
        lambda w: w.score(*[{}] * (MAX_QUERIES + 1)),
        "INVALID_FIELD",
    )
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
            yield Bad(
                f"{what} in {method}", method, request, "NOT_FOUND", "LOCK_UNKNOWN"
            )
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


def bad_handles() -> Iterator[Bad]:
    methods = {
        f"{CACHE}/MatchPrefix": World.match,
        f"{CACHE}/Insert": lambda w, **of: w.insert(page_ids=[], tokens=[], **of),
        f"{CACHE}/Lock": World.lock_prefix,
    }
    gone = {
        "another epoch": {"epoch": 12345},
        "no epoch": {"epoch": 0},
        "no node": {"node": 0, "tokens": 0},
        "a node that never was": {"node": 2**64 - 1},
        "more tokens than its node": {"tokens": 1 << 20},
    }
    for (what, fields), (method, make) in itertools.product(
        gone.items(), methods.items()
    ):
        yield Bad(
            f"a handle of {what} in {method}",
            method,
            lambda w, fields=fields, make=make: make(w, after=w.handle_with(**fields)),
            "NOT_FOUND",
            "HANDLE_GONE",
        )
    lora = types_pb2.Namespace(extra_key="lora")
    for method, make in methods.items():
        yield Bad(
            f"a handle of another namespace in {method}",
            method,
            lambda w, make=make: make(w, after=w.handle, namespace=lora),
            "NOT_FOUND",
            "HANDLE_GONE",
        )
        yield bad_request(
            f"a handle within a page in {method}",
            method,
            lambda w, make=make: make(w, after=w.handle_with(tokens=1)),
            "INVALID_FIELD",
        )
    yield bad_request(
        "both a lock and a handle",
        f"{CACHE}/Insert",
        lambda w: w.insert(lock_id=w.lock, after=w.handle),
        "INVALID_FIELD",
    )


def bad_waits() -> Iterator[Bad]:
    match = f"{CACHE}/MatchPrefix"
    cases = {
        "a wait without a lock": {"lock": False, "pending_wait_ms": 1},
        "too long a wait": {"pending_wait_ms": MAX_PENDING_WAIT_MS + 1},
        "the longest wait": {"pending_wait_ms": MAX_UINT32},
        "a request id without a lock": {"lock": False, "request_id": 1},
    }
    for what, fields in cases.items():
        yield bad_request(
            what, match, lambda w, fields=fields: w.match(**fields), "INVALID_FIELD"
        )
    yield not_allowed(
        "a wait in a session that has ended",
        match,
        lambda w: w.match(session_id=w.ended_session, pending_wait_ms=1000),
        "SESSION_LOST",
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


def bad_prompt_tokens() -> Iterator[Bad]:
    """Yields inserts that name more tokens of the prompt than the lock holds.

    `World.lock` was taken without a reserve, so it holds no tokens.
    """
    insert = f"{CACHE}/Insert"
    cases = {
        "prompt_tokens without a lock": lambda w: w.insert(tokens=[], prompt_tokens=32),
        "prompt_tokens of a lock that holds none": lambda w: w.insert(
            lock_id=w.lock, tokens=[], prompt_tokens=2 * PAGE_TOKENS
        ),
        "prompt_tokens and tokens of a lock that holds none": lambda w: w.insert(
            lock_id=w.lock, tokens=NEW[:PAGE_TOKENS], prompt_tokens=PAGE_TOKENS
        ),
        "the most prompt_tokens": lambda w: w.insert(
            lock_id=w.lock, prompt_tokens=MAX_UINT32
        ),
    }
    for what, request in cases.items():
        yield bad_request(what, insert, request, "INVALID_FIELD")
    yield Bad(
        "prompt_tokens of the lock of another session",
        insert,
        lambda w: w.insert(lock_id=w.others_lock, tokens=[], prompt_tokens=32),
        "NOT_FOUND",
        "LOCK_UNKNOWN",
    )


BAD_REQUESTS = [
    *bad_page_lists(),
    *bad_sessions(),
    *bad_namespaces(),
    *bad_token_lists(),
    *bad_locks(),
    *bad_sizes(),
    *bad_prompt_tokens(),
    *bad_handles(),
    *bad_waits(),
]
