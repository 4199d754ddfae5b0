"""Operators that ask a real pandod, and make it act."""

import threading
from collections.abc import Callable, Iterator

import grpc
import numpy as np
import pytest
from google.protobuf.message import Message
from pando_kv import Client, Namespace, PandoError
from pando_kv._proto.pando.v1 import admin_pb2, types_pb2
from pandod_process import PAGE_TOKENS, Pandod
from raw_calls import RawCalls
from worker_process import WorkerProcess

SALT = "a secret"


class Admin:
    """The calls of pando.v1.Admin by their names."""

    def __init__(self, address: str) -> None:
        self.calls = RawCalls(address)
        self._channel = grpc.insecure_channel(address)

    def __call__(self, method: str, **fields: object) -> Message:
        request = getattr(admin_pb2, f"{method}Request")(**fields)
        answer = self.calls.unary(f"pando.v1.Admin/{method}", request)
        return getattr(admin_pb2, f"{method}Response").FromString(answer)

    def failure(self, method: str, **fields: object) -> tuple[str, str]:
        request = getattr(admin_pb2, f"{method}Request")(**fields)
        return self.calls.failure(f"pando.v1.Admin/{method}", request)

    def explain(self, tokens: np.ndarray, **namespace: str) -> Message:
        return self(
            "ExplainMatch",
            namespace=types_pb2.Namespace(**namespace),
            tokens=tokens.tolist(),
        )

    def dump(self, **fields: object) -> list[admin_pb2.DumpTreeResponse]:
        call = self._channel.unary_stream(
            "/pando.v1.Admin/DumpTree",
            response_deserializer=admin_pb2.DumpTreeResponse.FromString,
        )
        request = admin_pb2.DumpTreeRequest(**fields).SerializeToString()
        return list(call(request, timeout=30))

    def close(self) -> None:
        self._channel.close()
        self.calls.__exit__()


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod]) -> Pandod:
    return start_pandod()


@pytest.fixture
def admin(pandod: Pandod) -> Iterator[Admin]:
    calls = Admin(pandod.address)
    yield calls
    calls.close()


@pytest.fixture
def client(pandod: Pandod) -> Iterator[Client]:
    with Client(pandod.address, name="the worker") as worker:
        yield worker


def prompt(first: int, pages: int) -> np.ndarray:
    return np.arange(first, first + pages * PAGE_TOKENS, dtype=np.uint32)


def publish(client: Client, tokens: np.ndarray, **options: object) -> None:
    client.insert(tokens, client.allocate_pages(tokens.size // PAGE_TOKENS), **options)


def test_namespaces_are_listed_without_their_salts(admin, client):
    publish(client, prompt(0, 1), namespace=Namespace("lora", SALT))
    publish(client, prompt(0, 3))
    listed = admin("ListNamespaces")
    assert listed.total == 2
    large, small = listed.namespaces
    assert (large.evictable_pages, large.HasField("extra_key")) == (3, False)
    assert (small.extra_key, small.has_cache_salt, small.nodes) == ("lora", True, 1)
    assert SALT.encode() not in listed.SerializeToString()
    assert len(admin("ListNamespaces", limit=1).namespaces) == 1


def test_one_namespace_is_flushed_by_key_or_by_number(admin, client):
    for name in ("a", "b", "c"):
        publish(client, prompt(0, 2), namespace=Namespace(name))
    by_key = admin("Flush", namespace=types_pb2.Namespace(extra_key="a"))
    assert (by_key.evicted_pages, by_key.protected_pages) == (2, 0)
    number = next(
        ns.number for ns in admin("ListNamespaces").namespaces if ns.extra_key == "b"
    )
    with client.lock(prompt(0, 1), namespace=Namespace("b")):
        by_number = admin("Flush", namespace_number=number)
        assert (by_number.evicted_pages, by_number.protected_pages) == (1, 1)
    assert admin("Flush", namespace_number=999).evicted_pages == 0
    assert client.stats().pages.evictable == 3


def test_the_eviction_policy_changes_on_a_live_cache(admin, client):
    publish(client, prompt(0, 1))
    publish(client, prompt(1000, 1))
    assert admin("SetEvictionPolicy", policy="mru").previous == "lru"
    assert admin("GetStats").eviction_policy == "mru"
    client.evict(1)
    assert client.match_prefix(prompt(0, 1)).matched_tokens == PAGE_TOKENS
    assert admin("SetEvictionPolicy", policy="lru").previous == "mru"


def test_an_unknown_policy_is_refused(admin):
    refusal = admin.failure("SetEvictionPolicy", policy="best")
    assert refusal == ("INVALID_ARGUMENT", "INVALID_FIELD")


def test_locks_are_listed_with_their_owners(admin, client):
    publish(client, prompt(0, 3))
    with client.lock(prompt(0, 2)), client.lock(prompt(0, 3)):
        listed = admin("ListLocks")
        assert listed.total == 2
        assert [lock.locked_tokens for lock in listed.locks] == [
            2 * PAGE_TOKENS,
            3 * PAGE_TOKENS,
        ]
        owner = listed.locks[0]
        assert (owner.session_number, owner.client_name) == (1, "the worker")
        assert owner.namespace_number == admin("ListNamespaces").namespaces[0].number
        assert admin("ListLocks", session_number=2).total == 0
        limited = admin("ListLocks", limit=1)
        assert (len(limited.locks), limited.total) == (1, 2)
    assert admin("ListLocks").total == 0


def test_the_locks_of_a_worker_that_hangs_are_released(admin, client, pandod):
    publish(client, prompt(0, 3))
    with WorkerProcess(pandod.address) as worker:
        worker.do("lock")
        worker.pause()
        (lock,) = admin("ListLocks").locks
        assert lock.session_number != 1
        released = admin("ReleaseLocks", session_number=lock.session_number)
        assert released.released_locks == 1
        assert client.stats().pages.protected == 0
        worker.resume()


def test_a_worker_finds_released_locks_unknown_and_goes_on(admin, client):
    publish(client, prompt(0, 3))
    lock = client.lock(prompt(0, 3))
    reserved = client.allocate_pages(2)
    assert admin("ReleaseLocks", session_number=1).released_locks == 1
    with pytest.raises(PandoError) as refusal:
        lock.release()
    assert refusal.value.reason == "LOCK_UNKNOWN"
    client.free_pages(reserved)
    assert client.check_invariants() == []


def test_locks_of_a_session_that_is_not_open_cannot_be_released(admin):
    refusal = admin.failure("ReleaseLocks", session_number=7)
    assert refusal == ("FAILED_PRECONDITION", "SESSION_LOST")


def test_a_match_is_explained(admin, client):
    publish(client, prompt(0, 3))
    publish(client, prompt(0, 3), namespace=Namespace("other"))
    complete = admin.explain(prompt(0, 3))
    assert complete.end == admin_pb2.MATCH_END_COMPLETE

    floor = admin.explain(np.append(prompt(0, 3), 5))
    assert floor.end == admin_pb2.MATCH_END_PAGE_FLOOR
    assert floor.matched_tokens == 3 * PAGE_TOKENS

    other = prompt(0, 3)
    other[PAGE_TOKENS + 5] = 999_999
    diverged = admin.explain(other)
    assert diverged.end == admin_pb2.MATCH_END_DIVERGED
    assert diverged.matched_tokens == PAGE_TOKENS
    assert diverged.diverged_at == PAGE_TOKENS + 5

    never = admin.explain(prompt(0, 4))
    assert never.end == admin_pb2.MATCH_END_NEVER_CACHED

    with client.lock(prompt(0, 2)):
        admin("Flush", namespace=types_pb2.Namespace())
        evicted = admin.explain(prompt(0, 3))
        assert evicted.end == admin_pb2.MATCH_END_EVICTED
        assert evicted.evicted_for == types_pb2.EVICTION_REASON_FLUSH
        assert [lock.locked_tokens for lock in evicted.locks] == [2 * PAGE_TOKENS]
        (longer,) = evicted.longer_in_namespaces
        assert longer in [ns.number for ns in admin("ListNamespaces").namespaces]


def test_a_page_that_is_being_computed_is_pending(admin, client):
    tokens = prompt(0, 2)
    assert not admin.explain(tokens).is_pending
    match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
    assert admin.explain(tokens).is_pending
    match.lock.release()
    assert not admin.explain(tokens).is_pending


def test_too_many_tokens_to_explain_are_refused(start_pandod):
    pandod = start_pandod(max_tokens_per_request=10)
    admin = Admin(pandod.address)
    refusal = admin.failure("ExplainMatch", tokens=range(11))
    assert refusal == ("INVALID_ARGUMENT", "TOO_MANY_TOKENS")
    admin.close()


def test_a_dump_has_every_node_after_its_parent(start_pandod):
    pandod = start_pandod(pool_pages=3000)
    admin = Admin(pandod.address)
    with Client(pandod.address) as client:
        publish(client, prompt(0, 1))
        for i in range(2500):
            turn = np.full(PAGE_TOKENS, i + 1000, np.uint32)
            publish(client, np.concatenate([prompt(0, 1), turn]))
        messages = admin.dump()
        assert [len(message.nodes) for message in messages] == [1000, 1000, 501]
        assert messages[-1].omitted == 0
        nodes = [node for message in messages for node in message.nodes]
        root = nodes[0]
        assert (root.parent, root.depth, root.begin_token) == (0, 0, 0)
        assert {node.parent for node in nodes[1:]} == {root.node}
        assert {node.depth for node in nodes[1:]} == {1}
        assert sum(node.pages for node in nodes) == client.stats().pages.evictable
        assert root.hits == 2501

        cut = admin.dump(limit=7)
        assert [len(message.nodes) for message in cut] == [7]
        assert cut[0].omitted == 2494
        assert not admin.dump(namespace_number=99)[0].nodes
    admin.close()


def test_dumps_of_an_empty_cache_are_one_empty_message(admin):
    assert admin.dump() == [admin_pb2.DumpTreeResponse()]


def test_nothing_is_disturbed_by_operators_who_look_all_the_time(admin, client):
    stop = threading.Event()
    failures: list[Exception] = []

    def look() -> None:
        try:
            while not stop.is_set():
                admin("ListNamespaces")
                admin("ListLocks")
                admin.explain(prompt(0, 5))
                admin.dump()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for i in range(150):
        tokens = prompt(i % 7, 1 + i % 5)
        match = client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        client.insert(
            tokens[match.matched_tokens :],
            match.reserved_page_ids,
            lock=match.lock,
            unlock=True,
        )
    stop.set()
    thread.join()
    assert not failures
    assert client.check_invariants() == []
