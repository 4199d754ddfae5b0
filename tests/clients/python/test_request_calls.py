"""The calls of requests on a lane, which the native module makes in one step: the bytes
it sends, the results it builds, and the cases it leaves to Python."""

import array
import gc
import mmap
import os
import struct
from dataclasses import replace

import numpy as np
import pytest
from interrupted import Interrupted
from lanes import needs_lane
from pando_kv import (
    Client,
    ExpectedReuse,
    Insert,
    Load,
    Match,
    Namespace,
    PandoError,
    PrefixHandle,
    results,
)
from pando_kv._call import Begun
from pando_kv._lane import _RESPONSES, OPEN_LANE, open_lane_request
from pando_kv._locks import LockHandle
from pando_kv._memory_socket import fetch_memory
from pando_kv._native_module import native
from pando_kv._proto.pando.v1 import data_path_pb2, pool_pb2, prefix_cache_pb2
from pando_kv._request_client import Lock
from pandod_process import PAGE_TOKENS
from prompts import admit_and_publish, prompt

pytestmark = needs_lane

TIMEOUT = 10.0
SLOTS, SLOT_BYTES, ARENA = 4096, 64, 8192
NAMESPACE = Namespace("extra", "salt", bigram=True)


class OpenLane:
    """A lane of a client's session, with memory that the test can read."""

    def __init__(self, client: Client) -> None:
        connection = client._connection
        self.sessions = connection.sessions
        self.session = self.sessions.current()
        grant = data_path_pb2.OpenLaneResponse.FromString(
            connection._exchange_raw(
                OPEN_LANE, open_lane_request(self.session), TIMEOUT
            )
        )
        parts = fetch_memory(grant.memory_socket, grant.token, TIMEOUT)
        memory, doorbell, gauges = (fd for fd, _ in parts)
        os.close(gauges)
        self._memory = mmap.mmap(memory, 0, prot=mmap.PROT_READ)
        self.lane = native.Lane(memory, doorbell)
        self.calls = native.RequestCalls(
            self.lane, self.sessions, self.session, results, Begun, _RESPONSES
        )

    def last_request(self) -> bytes:
        """Returns the request in the first slot; calls one at a time use this slot."""
        words = struct.unpack_from("<5I", self._memory, SLOTS)
        begin = ARENA + words[3]
        return self._memory[begin : begin + words[4]]


@pytest.fixture
def opened(client):
    """Yields an OpenLane in place of the client's lane; a session has only one."""
    lane = OpenLane(client)
    yield lane
    lane.lane.close()


def handle_message(handle):
    return {"epoch": handle.epoch, "node": handle.node, "tokens": handle.tokens}


def namespace_message(namespace):
    return {
        "extra_key": namespace.extra_key,
        "cache_salt": namespace.cache_salt,
        "bigram": namespace.bigram,
    }


def test_a_match_is_sent_with_all_its_fields(opened):
    handle = PrefixHandle(opened.session.epoch, 2**63 + 1, 2)
    begun = opened.calls.match_prefix(
        TIMEOUT,
        LockHandle,
        [7, 8, 2**32 - 1],
        NAMESPACE,
        handle,
        0,
        True,
        300,
        False,
        1.0005,
        Load.START,
    )
    assert isinstance(begun, Begun)
    assert opened.last_request() and begun.request_id
    assert prefix_cache_pb2.MatchPrefixRequest.FromString(
        opened.last_request()
    ) == prefix_cache_pb2.MatchPrefixRequest(
        session_id=opened.session.session_id,
        namespace=namespace_message(NAMESPACE),
        tokens=[2**32 - 1],
        max_tokens=0,
        lock=True,
        reserve_tokens=300,
        touch=False,
        after=handle_message(handle),
        pending_wait_ms=1001,
        request_id=begun.request_id,
        load=Load.START.value,
    )


def test_an_insert_is_sent_with_all_its_fields(opened):
    handle = PrefixHandle(opened.session.epoch, 5, PAGE_TOKENS)
    tokens = np.arange(3 * PAGE_TOKENS)
    begun = opened.calls.insert(
        TIMEOUT,
        tokens,
        (9, 10, 11),
        NAMESPACE,
        handle,
        None,
        True,
        False,
        True,
        array.array("I", [4, 5]),
        None,
        6,
        7,
        8,
        ExpectedReuse.SOON,
        9,
    )
    assert prefix_cache_pb2.InsertRequest.FromString(
        opened.last_request()
    ) == prefix_cache_pb2.InsertRequest(
        session_id=opened.session.session_id,
        namespace=namespace_message(NAMESPACE),
        tokens=tokens[PAGE_TOKENS:],
        page_ids=[10, 11],
        lock_action=prefix_cache_pb2.LOCK_ACTION_RELOCK,
        keep_duplicates=True,
        free_page_ids=[4, 5],
        prompt_tokens=6,
        after=handle_message(handle),
        priority=7,
        request_id=begun.request_id,
        output_tokens=8,
        expected_reuse=ExpectedReuse.SOON.value,
        retain_seconds=9,
    )


def test_calls_about_pages_and_locks_are_sent_with_all_their_fields(opened, client):
    calls, session_id = opened.calls, opened.session.session_id
    begun = calls.allocate_pages(TIMEOUT, 2**20, 2**20, NAMESPACE)
    assert pool_pb2.AllocatePagesRequest.FromString(
        opened.last_request()
    ) == pool_pb2.AllocatePagesRequest(
        session_id=session_id,
        pages=2**20,
        namespace=namespace_message(NAMESPACE),
        request_id=begun.request_id,
        min_pages=2**20,
    )
    begun = calls.free_pages(TIMEOUT, [1, 2**32 - 1], opened.session.generation)
    assert pool_pb2.FreePagesRequest.FromString(
        opened.last_request()
    ) == pool_pb2.FreePagesRequest(
        session_id=session_id, page_ids=[1, 2**32 - 1], request_id=begun.request_id
    )
    with client.lock(prompt(1)) as lock, client.lock(prompt(1)) as other:
        lock.lock_id, lock_id = 2**64 - 1, lock.lock_id
        begun = calls.unlock(TIMEOUT, opened.session, [lock, other])
        assert prefix_cache_pb2.UnlockRequest.FromString(
            opened.last_request()
        ) == prefix_cache_pb2.UnlockRequest(
            session_id=session_id,
            lock_ids=[2**64 - 1, other.lock_id],
            request_id=begun.request_id,
        )
        lock.lock_id = lock_id


def test_what_is_not_plain_is_left_to_python_and_nothing_is_sent(opened):
    class Seven:
        def __index__(self):
            return 7

    plain = [TIMEOUT, LockHandle, [1], None, None, None, False, 0, True, 0.0]
    plain.append(Load.SERVER_POLICY)
    other = {
        2: [[True], [-1], [2**32], [1.5], "text", None, 3, np.zeros((2, 2), int)],
        3: ["namespace", Namespace(5), Namespace("\ud800"), Namespace(bigram=1)],
        4: [PrefixHandle(1, 1, 2), PrefixHandle(-1, 1, 0), "handle"],
        5: [-1, 2**32, True, 1.5, Seven(), np.int64(1)],
        6: [1, None, np.True_],
        7: [-1, None],
        8: [1],
        9: [float("nan"), None, True],
        10: [None, 1],
    }
    opened.calls.match_prefix(*plain)
    sent = opened.last_request()
    for place, values in other.items():
        for value in values:
            arguments = [*plain]
            arguments[place] = value
            assert opened.calls.match_prefix(*arguments) is None, (place, value)
    assert opened.last_request() == sent
    assert opened.calls.match_prefix(*plain).matched_tokens == 0


def test_the_results_are_those_of_the_other_transport(pandod):
    made = []
    for lane in (True, False):
        with Client(pandod.address, lane=lane) as client:
            namespace = Namespace(f"lane {lane}")
            tokens = prompt(3)
            first = client.match_prefix(
                tokens, namespace=namespace, lock=True, reserve_tokens=len(tokens)
            )
            second = client.match_prefix(
                tokens, namespace=namespace, lock=True, reserve_tokens=len(tokens)
            )
            inserts = [
                client.insert(
                    tokens,
                    each.reserved_page_ids,
                    lock=each.lock,
                    unlock=True,
                )
                for each in (first, second)
            ]
            last = client.match_prefix(tokens, namespace=namespace)
            assert inserts[1].page_ids.tolist() == first.reserved_page_ids.tolist()
            assert last.page_ids.tolist() == first.reserved_page_ids.tolist()
            made.append([first, second, *inserts, last])
    for one, other in zip(*made, strict=True):
        assert type(one) is type(other) in (Match, Insert)
        assert list(vars(one)) == list(vars(other))
        for name, value in vars(one).items():
            theirs = getattr(other, name)
            assert type(value) is type(theirs), name
            if isinstance(value, np.ndarray):
                assert (value.dtype, value.size) == (theirs.dtype, theirs.size), name
                assert value.flags.owndata and value.flags.writeable
            elif name in ("matched_tokens", "existing_tokens", "freed_duplicates"):
                assert value == theirs, name
        assert repr(replace(one)).startswith(type(one).__name__ + "(")


def test_a_lock_that_cannot_be_used_is_refused_before_anything_is_sent(client):
    match = client.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    match.lock.release()
    made = client.stats().counters.inserts
    for action in ({"unlock": True}, {"relock": True}, {}):
        with pytest.raises(PandoError, match="released already"):
            client.insert(prompt(1), match.reserved_page_ids, lock=match.lock, **action)
    assert client.stats().counters.inserts == made
    client.free_pages(match.reserved_page_ids)


def test_an_insert_that_is_refused_leaves_its_lock_held(client):
    match = client.match_prefix(prompt(1), lock=True)
    with pytest.raises(PandoError):
        client.insert(prompt(1), [1], lock=match.lock, unlock=True)
    assert match.lock.held
    match.lock.release()


class InterruptedLock(Lock):
    """A lock that raises one interrupt in the Python code that a call runs."""

    is_interrupted = False

    def require_held(self, sessions):
        if not self.is_interrupted:
            self.is_interrupted = True
            raise Interrupted
        super().require_held(sessions)


def test_an_interrupt_before_an_insert_is_sent_is_not_lost(client):
    match = client.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    match.lock.__class__ = InterruptedLock
    made = client.stats().counters.inserts
    with pytest.raises(Interrupted):
        client.insert(prompt(1), match.reserved_page_ids, lock=match.lock)
    assert client.stats().counters.inserts == made
    client.insert(prompt(1), match.reserved_page_ids, lock=match.lock, unlock=True)


def test_a_kept_match_is_little_work_for_the_collector(client):
    admit_and_publish(client, prompt(2))
    client.match_prefix(prompt(2), lock=True).lock.release()
    gc.collect()
    before = len(gc.get_objects())
    kept = [client.match_prefix(prompt(2), lock=True) for _ in range(100)]
    # The collector tracks the match, its lock, its handle and the objects in them.
    assert len(gc.get_objects()) - before < 100 * 6
    client.unlock(*(match.lock for match in kept))
