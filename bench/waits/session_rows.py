"""Rows that time short calls beside sessions that attach, end, or watch."""

from collections.abc import Iterator

from pando_kv import Client
from pando_kv._proto.pando.v1 import events_pb2, session_pb2
from rows import Row
from waits.long_calls import MANY_LEAVES, MOST_TOKENS, LongCalls
from waits.other_worker import OtherWorker

SESSIONS = 100


def rows_of_sessions(other: OtherWorker, calls: LongCalls) -> Iterator[Row]:
    """Yields the rows of sessions. REQUIRES: the cache is empty."""

    def open_sessions(lane: bool) -> None:
        for _ in range(SESSIONS):
            with Client(calls.address, lane=lane) as client:
                client.attach_pool()

    yield other.row(
        f"{SESSIONS} sessions that attach and end", lambda: open_sessions(lane=False)
    )
    yield other.row(
        f"{SESSIONS} sessions with lanes that attach and end",
        lambda: open_sessions(lane=True),
    )
    with Client(calls.address, name="one that ends", lane=False) as ending:
        calls.allocate(MOST_TOKENS, ending.session_id)
        end = session_pb2.EndSessionRequest(session_id=ending.session_id)
        yield other.row(
            f"the end of a session with {MOST_TOKENS:,} reserved pages",
            lambda: calls.call("Sessions/End", end),
        )


def row_of_watch(other: OtherWorker, calls: LongCalls) -> Row:
    def watch() -> None:
        answers = calls.stream("Events/Watch", events_pb2.WatchRequest())
        for answer in answers:
            if any(event.HasField("snapshot_end") for event in answer.events):
                answers.cancel()
                return

    return other.row(f"the snapshot of Watch, {MANY_LEAVES}", watch)
