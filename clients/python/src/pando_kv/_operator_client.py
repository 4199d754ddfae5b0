"""The operator and watcher calls of the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from pando_kv import _operator_calls as calls
from pando_kv._call import typed_errors
from pando_kv._channel import Access
from pando_kv._connection import Connection
from pando_kv._proto.pando.v1 import events_pb2
from pando_kv._session import SessionTracker
from pando_kv.errors import from_rpc_error
from pando_kv.events import Event, events_of
from pando_kv.operators import (
    BlockExplanation,
    Explanation,
    KindInfo,
    Listing,
    LockInfo,
    NamespaceInfo,
    QuarantineInfo,
    SessionInfo,
    TreeDump,
    TreeNode,
)
from pando_kv.results import Flush, Namespace, Stats
from pando_kv.tls import Tls


class EventWatch(Iterator[Event]):
    """The events of the cache, in order, for one thread.

    The iteration ends when the watch or its client is closed, or when pandod shuts
    down. If the connection breaks, the iteration raises UnavailableError; then start a
    new watch after the last event.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._events: Iterator[Event] = iter(())

    def __next__(self) -> Event:
        while (event := next(self._events, None)) is None:
            try:
                data = next(self._stream)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.CANCELLED:
                    raise StopIteration from None
                raise from_rpc_error(error) from error
            self._events = events_of(events_pb2.WatchResponse.FromString(data))
        return event

    def close(self) -> None:
        """Ends the iteration. Any thread may call it."""
        self._stream.cancel()

    def __enter__(self) -> EventWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OperatorClient:
    """The calls about the cache as a whole, which need no session."""

    _connection: Connection

    def stats(self) -> Stats:
        return self._connection.send(calls.stats())

    def flush(self, namespace: Namespace | int | None = None) -> Flush:
        """Evicts everything that is not locked, in one namespace if one is given.

        The namespace may also be given by its number in `namespaces`.
        """
        return self._connection.send(calls.flush(namespace))

    def set_eviction_policy(self, policy: str) -> str:
        """Changes the eviction policy of the running cache, and returns the previous
        policy.

        The policy is lru, lfu, fifo, mru, filo, priority, slru or reuse. The change
        evicts nothing.
        """
        return self._connection.send(calls.set_eviction_policy(policy))

    def namespaces(self, *, limit: int = 1000) -> Listing[NamespaceInfo]:
        """Returns the namespaces that have something cached or locked, the largest
        first."""
        return self._connection.send(calls.namespaces(limit))

    def sessions(self, *, limit: int = 1000) -> Listing[SessionInfo]:
        """Returns the open sessions, the oldest first."""
        return self._connection.send(calls.sessions(limit))

    def locks(self, *, limit: int = 1000, session_number: int = 0) -> Listing[LockInfo]:
        """Returns the held locks, the oldest first, of one session if it is given."""
        return self._connection.send(calls.locks(limit, session_number))

    def release_locks(self, session_number: int) -> int:
        """Takes all locks away from one session, and returns their number.

        Use it for a worker that hangs. The session lives on and keeps its reserved
        pages.
        """
        return self._connection.send(calls.release_locks(session_number))

    def quarantine(self, *, limit: int = 1000) -> Listing[QuarantineInfo]:
        """Returns the lost sessions that have pages in quarantine, the oldest first."""
        return self._connection.send(calls.quarantine(limit))

    def free_quarantine(self, session_number: int) -> int:
        """Frees the pages that a lost session has in quarantine, and returns their
        number.

        The call is dangerous while a process of that session lives: a write to these
        pages overwrites the data of their next owners.
        """
        return self._connection.send(calls.free_quarantine(session_number))

    def explain(
        self, tokens: Any, *, namespace: Namespace | None = None
    ) -> Explanation:
        """Explains why a prompt matches as far as it does, and no further."""
        return self._connection.send(calls.explain(tokens, namespace))

    def kinds(self, *, limit: int = 1000) -> Listing[KindInfo]:
        """Returns the kinds of blocks, those with the most memory first."""
        return self._connection.send(calls.kinds(limit))

    def explain_block(self, kind_number: int, key: bytes) -> BlockExplanation:
        """Explains why the block of a key is found or not."""
        return self._connection.send(calls.explain_block(kind_number, key))

    def dump_tree(self, *, limit: int = 10_000, namespace_number: int = 0) -> TreeDump:
        """Returns up to `limit` nodes of the tree, of one namespace if it is given."""
        request = calls.dump_tree_request(limit, namespace_number)
        nodes: list[TreeNode] = []
        omitted = 0
        with typed_errors():
            for data in self._connection.stream(
                calls.DUMP_TREE, request, self._connection.timeout
            ):
                more, omitted = calls.dumped(data)
                nodes += more
        return TreeDump(nodes, omitted)

    def watch_events(
        self, *, after_sequence: int | None = None, epoch: int = 0
    ) -> EventWatch:
        """Watches the pages that enter and leave the cache, until the watch is closed.

        The watch begins with a snapshot: AllBlocksCleared, BlocksStored for everything
        that is cached, and SnapshotEnd. If `after_sequence` and `epoch` of an event are
        given, the watch continues after that event instead. If pandod no longer has all
        events since then, it sends EventsLost and a snapshot.
        """
        request = calls.watch_request(after_sequence, epoch)
        return EventWatch(self._connection.stream(calls.WATCH, request))

    def drain(self, *, exit: bool = False) -> None:
        """Makes pandod admit nothing new, which cannot be undone.

        With `exit` pandod also ends once nothing is locked or reserved.
        """
        self._connection.send(calls.drain(exit))

    def restart(self) -> None:
        """Makes pandod end at once, so that its keeper starts the program that is now
        at its path.

        Blocks stay, and the cache of a host pool without a mover socket; where there
        are no blocks, also the sessions of that pool. All else is lost. Raises
        NotAllowedError with the reason NO_KEEPER if nothing would start pandod again.
        """
        self._connection.send(calls.restart())

    def check_invariants(self) -> list[str]:
        """Verifies pandod's index. Returns one sentence for each invariant that does
        not hold."""
        return self._connection.send(calls.check_invariants())


class Operator(OperatorClient):
    """A client without a session, for dashboards, routers and operators that ask about
    the cache as a whole. Any thread may use it.

    If pandod has credentials, calls that only read or watch need the role `reader`, and
    calls that change something need `admin`.
    """

    def __init__(
        self,
        address: str = "",
        *,
        timeout: float = 5.0,
        tls: Tls | None = None,
        token: str | None = None,
    ) -> None:
        """Takes the parameters of `Client`. The first call connects."""
        access = Access(address, tls, token)
        self._connection = Connection(access, SessionTracker("", None), timeout)

    def close(self) -> None:
        """Closes the connection, which also ends the watches."""
        self._connection.close()

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
