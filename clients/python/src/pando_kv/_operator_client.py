"""The calls for operators and watchers, of the synchronous client."""

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
    """The events of the cache, in order; for one thread.

    The iteration ends when the watch or its client is closed, or when the server
    shuts down. It raises UnavailableError when the connection breaks: watch again
    from the last event.
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
    """The calls that concern the cache as a whole, and need no session."""

    _connection: Connection

    def stats(self) -> Stats:
        return self._connection.send(calls.stats())

    def flush(self, namespace: Namespace | int | None = None) -> Flush:
        """Evicts everything that is not locked, in one namespace if it is given.

        The namespace may also be given by its number in `namespaces`.
        """
        return self._connection.send(calls.flush(namespace))

    def set_eviction_policy(self, policy: str) -> str:
        """Changes the eviction policy of the running cache; returns the policy before.

        One of lru, lfu, fifo, mru, filo, priority, slru, reuse. Evicts nothing.
        """
        return self._connection.send(calls.set_eviction_policy(policy))

    def namespaces(self, *, limit: int = 1000) -> Listing[NamespaceInfo]:
        """The namespaces with something cached or locked, the largest first."""
        return self._connection.send(calls.namespaces(limit))

    def sessions(self, *, limit: int = 1000) -> Listing[SessionInfo]:
        """The sessions that are open, the oldest first."""
        return self._connection.send(calls.sessions(limit))

    def locks(self, *, limit: int = 1000, session_number: int = 0) -> Listing[LockInfo]:
        """The locks that are held, the oldest first; of one session, if it is given."""
        return self._connection.send(calls.locks(limit, session_number))

    def release_locks(self, session_number: int) -> int:
        """Takes all locks away from one session; returns how many.

        For a worker that hangs. Its session lives on and keeps its reserved pages.
        """
        return self._connection.send(calls.release_locks(session_number))

    def quarantine(self, *, limit: int = 1000) -> Listing[QuarantineInfo]:
        """The lost sessions with pages in quarantine, the oldest first."""
        return self._connection.send(calls.quarantine(limit))

    def free_quarantine(self, session_number: int) -> int:
        """Frees the pages that a lost session has in quarantine; returns how many.

        Dangerous while a process of that session lives: if it still writes to these
        pages, it overwrites the data of their next owners.
        """
        return self._connection.send(calls.free_quarantine(session_number))

    def explain(
        self, tokens: Any, *, namespace: Namespace | None = None
    ) -> Explanation:
        """Why a prompt matches as far as it does, and no further."""
        return self._connection.send(calls.explain(tokens, namespace))

    def kinds(self, *, limit: int = 1000) -> Listing[KindInfo]:
        """The kinds of blocks, those with the most memory first."""
        return self._connection.send(calls.kinds(limit))

    def explain_block(self, kind_number: int, key: bytes) -> BlockExplanation:
        """Why the block of a key is found or not."""
        return self._connection.send(calls.explain_block(kind_number, key))

    def dump_tree(self, *, limit: int = 10_000, namespace_number: int = 0) -> TreeDump:
        """Up to `limit` nodes of the tree; of one namespace, if it is given."""
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
        """Watches what enters and leaves the cache, until the watch is closed.

        A snapshot comes first: AllBlocksCleared, BlocksStored for everything that is
        cached, SnapshotEnd. With the `after_sequence` and `epoch` of an event the watch
        continues after that event instead; only if the server does not have all events
        since then, an EventsLost and a snapshot come.
        """
        request = calls.watch_request(after_sequence, epoch)
        return EventWatch(self._connection.stream(calls.WATCH, request))

    def drain(self, *, exit: bool = False) -> None:
        """Makes the server admit nothing new. This cannot be undone.

        With `exit` the server also ends once nothing is locked or reserved.
        """
        self._connection.send(calls.drain(exit))

    def check_invariants(self) -> list[str]:
        """Verifies the server's index. Returns a sentence for each invariant that does
        not hold."""
        return self._connection.send(calls.check_invariants())


class Operator(OperatorClient):
    """Asks about the cache as a whole, and opens no session: for dashboards, routers
    and operators. Any thread may use it.

    Where pandod has credentials, calls that only read or watch need the role
    `reader`; calls that change something need `admin`.
    """

    def __init__(
        self,
        address: str = "",
        *,
        timeout: float = 5.0,
        tls: Tls | None = None,
        token: str | None = None,
    ) -> None:
        """As for `Client`; it connects with the first call."""
        access = Access(address, tls, token)
        self._connection = Connection(access, SessionTracker("", None), timeout)

    def close(self) -> None:
        """Ends its watches, too."""
        self._connection.close()

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
