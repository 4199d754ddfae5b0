"""The operator and watcher calls of the asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc

from pando_kv import _operator_calls as calls
from pando_kv._aio_connection import Connection
from pando_kv._call import typed_errors
from pando_kv._channel import Access
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


class AsyncEventWatch(AsyncIterator[Event]):
    """The events of the cache, in order, for one task.

    The iteration ends when the watch or its client is closed, or when pandod shuts
    down. If the connection breaks, the iteration raises UnavailableError; then start a
    new watch after the last event.
    """

    def __init__(self, stream: Any, is_closed: Callable[[], bool]) -> None:
        self._stream = stream
        self._is_closed = is_closed
        self._events: Iterator[Event] = iter(())

    async def __anext__(self) -> Event:
        while (event := next(self._events, None)) is None:
            self._events = events_of(await self._read())
        return event

    async def _read(self) -> events_pb2.WatchResponse:
        try:
            data = await self._stream.read()
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.CancelledError:
            if self._is_closed():
                raise StopAsyncIteration from None
            raise
        if data is grpc.aio.EOF:
            raise StopAsyncIteration
        response: events_pb2.WatchResponse = events_pb2.WatchResponse.FromString(data)
        return response

    def close(self) -> None:
        self._is_closed = lambda: True
        self._stream.cancel()

    async def __aenter__(self) -> AsyncEventWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncOperatorClient:
    """The calls about the cache as a whole, which need no session."""

    _connection: Connection

    async def stats(self) -> Stats:
        return await self._connection.send(calls.stats())

    async def flush(self, namespace: Namespace | int | None = None) -> Flush:
        """Evicts everything that is not locked, in one namespace if one is given.

        The namespace may also be given by its number in `namespaces`.
        """
        return await self._connection.send(calls.flush(namespace))

    async def set_eviction_policy(self, policy: str) -> str:
        """Changes the eviction policy of the running cache, and returns the previous
        policy.

        The policy is lru, lfu, fifo, mru, filo, priority, slru or reuse. The change
        evicts nothing.
        """
        return await self._connection.send(calls.set_eviction_policy(policy))

    async def namespaces(self, *, limit: int = 1000) -> Listing[NamespaceInfo]:
        """Returns the namespaces that have something cached or locked, the largest
        first."""
        return await self._connection.send(calls.namespaces(limit))

    async def sessions(self, *, limit: int = 1000) -> Listing[SessionInfo]:
        """Returns the open sessions, the oldest first."""
        return await self._connection.send(calls.sessions(limit))

    async def locks(
        self, *, limit: int = 1000, session_number: int = 0
    ) -> Listing[LockInfo]:
        """Returns the held locks, the oldest first, of one session if it is given."""
        return await self._connection.send(calls.locks(limit, session_number))

    async def release_locks(self, session_number: int) -> int:
        """Takes all locks away from one session, and returns their number.

        Use it for a worker that hangs. The session lives on and keeps its reserved
        pages.
        """
        return await self._connection.send(calls.release_locks(session_number))

    async def quarantine(self, *, limit: int = 1000) -> Listing[QuarantineInfo]:
        """Returns the lost sessions that have pages in quarantine, the oldest first."""
        return await self._connection.send(calls.quarantine(limit))

    async def free_quarantine(self, session_number: int) -> int:
        """Frees the pages that a lost session has in quarantine, and returns their
        number.

        The call is dangerous while a process of that session lives: a write to these
        pages overwrites the data of their next owners.
        """
        return await self._connection.send(calls.free_quarantine(session_number))

    async def explain(
        self, tokens: Any, *, namespace: Namespace | None = None
    ) -> Explanation:
        """Explains why a prompt matches as far as it does, and no further."""
        return await self._connection.send(calls.explain(tokens, namespace))

    async def kinds(self, *, limit: int = 1000) -> Listing[KindInfo]:
        """Returns the kinds of blocks, those with the most memory first."""
        return await self._connection.send(calls.kinds(limit))

    async def explain_block(self, kind_number: int, key: bytes) -> BlockExplanation:
        """Explains why the block of a key is found or not."""
        return await self._connection.send(calls.explain_block(kind_number, key))

    async def dump_tree(
        self, *, limit: int = 10_000, namespace_number: int = 0
    ) -> TreeDump:
        """Returns up to `limit` nodes of the tree, of one namespace if it is given."""
        request = calls.dump_tree_request(limit, namespace_number)
        nodes: list[TreeNode] = []
        omitted = 0
        with typed_errors():
            async for data in self._connection.stream(
                calls.DUMP_TREE, request, self._connection.timeout
            ):
                more, omitted = calls.dumped(data)
                nodes += more
        return TreeDump(nodes, omitted)

    def watch_events(
        self, *, after_sequence: int | None = None, epoch: int = 0
    ) -> AsyncEventWatch:
        """Watches the pages that enter and leave the cache, until the watch is closed.

        The watch begins with a snapshot: AllBlocksCleared, BlocksStored for everything
        that is cached, and SnapshotEnd. If `after_sequence` and `epoch` of an event are
        given, the watch continues after that event instead. If pandod no longer has all
        events since then, it sends EventsLost and a snapshot.
        """
        request = calls.watch_request(after_sequence, epoch)
        connection = self._connection
        return AsyncEventWatch(
            connection.stream(calls.WATCH, request),
            lambda: connection.sessions.closed,
        )

    async def drain(self, *, exit: bool = False) -> None:
        """Makes pandod admit nothing new, which cannot be undone.

        With `exit` pandod also ends once nothing is locked or reserved.
        """
        await self._connection.send(calls.drain(exit))

    async def restart(self) -> None:
        """Makes pandod end at once, so that its keeper starts the program that is now
        at its path.

        Blocks stay, and the cache of a host pool without a mover socket; where there
        are no blocks, also the sessions of that pool. All else is lost. Raises
        NotAllowedError with the reason NO_KEEPER if nothing would start pandod again.
        """
        await self._connection.send(calls.restart())

    async def check_invariants(self) -> list[str]:
        """Verifies pandod's index. Returns one sentence for each invariant that does
        not hold."""
        return await self._connection.send(calls.check_invariants())


class AsyncOperator(AsyncOperatorClient):
    """The asyncio version of `pando_kv.Operator`. Create it in the event loop whose
    tasks use it."""

    def __init__(
        self,
        address: str = "",
        *,
        timeout: float = 5.0,
        tls: Tls | None = None,
        token: str | None = None,
    ) -> None:
        """Takes the parameters of `AsyncClient`. The first call connects."""
        access = Access(address, tls, token)
        self._connection = Connection(access, SessionTracker("", None), timeout)

    async def close(self) -> None:
        """Closes the connection, which also ends the watches."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncOperator:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
