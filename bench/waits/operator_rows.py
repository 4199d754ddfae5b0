"""Rows that time short calls beside the calls of operators, in a cache with many
leaves, locks and lost pages."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import Message
from pando_kv import Client
from pando_kv._proto.pando.v1 import admin_pb2 as admin
from pando_kv._proto.pando.v1 import data_path_pb2, prefix_cache_pb2
from rows import Row
from waits.long_calls import LEAVES, MANY_LEAVES, MOST_TOKENS, LongCalls
from waits.other_worker import OtherWorker

LOST_WORKER = Path(__file__).resolve().parent / "lost_worker.py"
MOST_LOCKS = 65_536
MOST_LISTED = 10_000
LOST_PAGES = 1_000_000
NAMESPACES = 100_000


def rows_of_operators(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    def row(method: str, request: Message, where: str = MANY_LEAVES) -> Row:
        return other.row(
            f"{method}, {where}", lambda: calls.call(f"Admin/{method}", request)
        )

    yield row("GetStats", admin.GetStatsRequest())
    yield row("CheckInvariants", admin.CheckInvariantsRequest())
    yield row("ListSessions", admin.ListSessionsRequest())
    yield other.row(
        f"DumpTree, {MANY_LEAVES}",
        lambda: take_all(calls.stream("Admin/DumpTree", admin.DumpTreeRequest())),
    )
    yield row("ExplainMatch", admin.ExplainMatchRequest(tokens=range(MOST_TOKENS)))
    for policy in ("lfu", "reuse", "lru"):
        change = admin.SetEvictionPolicyRequest(policy=policy)
        yield row("SetEvictionPolicy", change, f"{policy}, {MANY_LEAVES}")

    where = f"{MOST_LOCKS:,} locks"
    with Client(calls.address, name="with locks", lane=False) as locking:
        lock_leaves(calls, locking.session_id)
        yield row("ListLocks", admin.ListLocksRequest(limit=1), f"one of {where}")
        yield row("ListLocks", admin.ListLocksRequest(limit=MOST_LISTED), where)
        release = admin.ReleaseLocksRequest(
            session_number=number_of(calls, "with locks")
        )
        yield row("ReleaseLocks", release, where)
    yield row("Flush", admin.FlushRequest())


def rows_of_namespaces(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    """Yields the rows of many namespaces. REQUIRES: the cache is empty; it is empty
    again afterwards."""
    where = f"{NAMESPACES:,} namespaces"
    yield other.row(
        f"inserts from 0 to {MANY_LEAVES}, {where}", lambda: calls.fill(NAMESPACES)
    )
    listing = admin.ListNamespacesRequest(limit=MOST_LISTED)
    yield other.row(
        f"ListNamespaces, {where}", lambda: calls.call("Admin/ListNamespaces", listing)
    )
    yield other.row(
        f"Flush, {where}", lambda: calls.call("Admin/Flush", admin.FlushRequest())
    )


def rows_of_quarantine(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    where = f"{LOST_PAGES:,} lost pages"
    with subprocess.Popen(
        [sys.executable, LOST_WORKER, calls.address, str(LOST_PAGES)],
        stdin=subprocess.PIPE,
        text=True,
    ) as worker:
        yield other.row(
            f"the loss of a worker with {LOST_PAGES:,} reserved pages",
            lambda: wait_for_quarantine(calls, worker),
        )
        yield other.row(f"ListQuarantine, {where}", lambda: quarantine(calls))
        (lost,) = quarantine(calls)
        free = admin.FreeQuarantineRequest(session_number=lost.session_number)
        yield other.row(
            f"FreeQuarantine, {where}", lambda: calls.call("Admin/FreeQuarantine", free)
        )
        worker.stdin.close()


def row_of_drain(other: OtherWorker, calls: LongCalls) -> Row:
    """Returns the row of Drain, which must be the last one: a drained pandod admits no
    more work."""
    return other.row("Drain", lambda: calls.call("Admin/Drain", admin.DrainRequest()))


def take_all(answers: Iterator[Message]) -> None:
    for _ in answers:
        pass


def lock_leaves(calls: LongCalls, session: int) -> None:
    first = MOST_TOKENS + LEAVES - MOST_LOCKS
    calls.batch(
        [
            data_path_pb2.BatchedRequest(
                lock=prefix_cache_pb2.LockRequest(session_id=session, tokens=[token])
            )
            for token in range(first, first + MOST_LOCKS)
        ]
    )


def number_of(calls: LongCalls, name: str) -> int:
    listed = calls.call("Admin/ListSessions", admin.ListSessionsRequest())
    (number,) = (s.session_number for s in listed.sessions if s.client_name == name)
    return number


def quarantine(calls: LongCalls) -> list[admin.QuarantineInfo]:
    request = admin.ListQuarantineRequest(limit=MOST_LISTED)
    return list(calls.call("Admin/ListQuarantine", request).sessions)


def wait_for_quarantine(calls: LongCalls, worker: subprocess.Popen[str]) -> None:
    while sum(lost.pages for lost in quarantine(calls)) < LOST_PAGES:
        if worker.poll():
            raise RuntimeError(
                f"the worker that is lost ended with {worker.returncode}"
            )
