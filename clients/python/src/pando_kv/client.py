"""The synchronous client."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Any, TypeVar

import grpc

from pando_kv import _calls
from pando_kv._channel import CHANNEL_OPTIONS, CLOSE_TIMEOUT, target_of
from pando_kv._locks import LockHandle
from pando_kv._session import OPEN_METHOD, Session, SessionTracker
from pando_kv._wire import Uint32Array
from pando_kv.errors import PandoError, UnavailableError, from_rpc_error
from pando_kv.layout import KvLayout, PoolDescription
from pando_kv.pool import MappedPool
from pando_kv.results import Flush, Insert, Match, Namespace, Stats

T = TypeVar("T")


class Client:
    """One worker's session with pandod. Any thread may use it.

    A background thread keeps the session alive: it resumes it when the connection
    breaks and opens a new one when the server no longer knows it, for example after
    a restart. `on_session_lost` is then called on that thread, before there is a new
    session. No call waits longer than `timeout` seconds.

    Do not use a client in a forked child; start processes with "spawn".
    """

    def __init__(
        self,
        address: str,
        *,
        name: str = "",
        timeout: float = 5.0,
        on_session_lost: Callable[[Session], None] | None = None,
    ) -> None:
        """Opens a session at "unix:/path", "/path" or "host:port".

        Raises UnavailableError if there is no answer within `timeout` seconds.
        """
        self._sessions = SessionTracker(name, on_session_lost)
        self._connection = _Connection(address, self._sessions, timeout)
        self._make_lock = partial(Lock, self._connection)
        # Ends the session also when the client is dropped or the process exits.
        self._finalizer = weakref.finalize(self, self._connection.close)
        try:
            self._connection.wait_opened()
        except BaseException:
            self.close()
            raise

    @property
    def session_id(self) -> int:
        return self._sessions.current().session_id

    @property
    def epoch(self) -> int:
        """Random id of the server's boot."""
        return self._sessions.current().epoch

    @property
    def generation(self) -> int:
        """Counts the sessions of this client, from 1."""
        return self._sessions.generation

    @property
    def pool(self) -> PoolDescription:
        """The pool as described when the session was opened."""
        return self._sessions.current().pool

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down: finish what runs, admit nothing new."""
        return self._sessions.draining

    def match_prefix(
        self,
        tokens: Any,
        *,
        namespace: Namespace | None = None,
        max_tokens: int | None = None,
        lock: bool = False,
        reserve_tokens: int = 0,
        touch: bool = True,
    ) -> Match[Lock]:
        """Finds the longest cached prefix, in whole pages.

        `max_tokens` caps the match (None: no cap, 0: no match); `lock` locks what
        matched; `reserve_tokens` reserves the pages that the match did not give, for
        that many tokens counted from the start of the prompt, and is refused without
        `lock`. All in one atomic step.
        """
        return self._connection.send(
            _calls.match_prefix(
                self._sessions,
                self._make_lock,
                tokens,
                namespace=namespace,
                max_tokens=max_tokens,
                lock=lock,
                reserve_tokens=reserve_tokens,
                touch=touch,
            )
        )

    def insert(
        self,
        tokens: Any,
        page_ids: Any,
        *,
        namespace: Namespace | None = None,
        lock: Lock | None = None,
        relock: bool = False,
        unlock: bool = False,
        keep_duplicates: bool = False,
        free_page_ids: Any = (),
        generation: int | None = None,
        prompt_tokens: int = 0,
    ) -> Insert:
        """Publishes pages whose KV is complete, one for each whole page of tokens.

        With `lock`, tokens begin at the end of what it protects, in its namespace;
        `relock` then moves it to the end of what was inserted, `unlock` releases it.
        The server still has the prompt of a match with `reserve_tokens`: the first
        `prompt_tokens` tokens after the end of its lock need not be sent again, and
        `tokens`, which may be empty, are those that follow them.
        `free_page_ids` are reserved pages to free in the same step. `generation`
        guards page ids used without a lock: those of a session that is over are
        refused.
        """
        return self._connection.send(
            _calls.insert(
                self._sessions,
                tokens,
                page_ids,
                namespace=namespace,
                lock=lock,
                relock=relock,
                unlock=unlock,
                keep_duplicates=keep_duplicates,
                free_page_ids=free_page_ids,
                generation=generation,
                prompt_tokens=prompt_tokens,
            )
        )

    def lock(self, tokens: Any, *, namespace: Namespace | None = None) -> Lock:
        """Locks the longest cached prefix of the tokens."""
        return self._connection.send(
            _calls.lock(self._sessions, self._make_lock, tokens, namespace=namespace)
        )

    def unlock(self, *locks: Lock) -> None:
        """Releases locks, all or none; those released already are left out."""
        self._connection.unlock(*locks)

    def evict(self, pages: int) -> int:
        """Evicts up to that many pages; returns how many."""
        return self._connection.send(_calls.evict(pages))

    def allocate_pages(self, pages: int) -> Uint32Array:
        """Reserves pages for the session, evicting as needed; all or nothing."""
        return self._connection.send(_calls.allocate_pages(self._sessions, pages))

    def free_pages(self, page_ids: Any, *, generation: int | None = None) -> None:
        """Gives reserved pages back, all or none."""
        self._connection.send(
            _calls.free_pages(self._sessions, page_ids, generation=generation)
        )

    def describe_pool(self) -> PoolDescription:
        return self._connection.send(_calls.describe_pool())

    def attach_pool(
        self, *, expected_layout: KvLayout | None = None, model: str | None = None
    ) -> MappedPool:
        """Maps the pool. What is given must agree with the server, or it refuses.

        What is not given is taken from the server.
        """
        grant = self._connection.send(
            _calls.attach_pool(
                self._sessions, expected_layout=expected_layout, model=model
            )
        )
        return MappedPool.attach(
            grant.session.pool,
            grant.session.epoch,
            grant.memory_socket,
            grant.token,
            self._connection.timeout,
        )

    def stats(self) -> Stats:
        return self._connection.send(_calls.stats())

    def flush(self) -> Flush:
        """Evicts everything that is not locked."""
        return self._connection.send(_calls.flush())

    def check_invariants(self) -> list[str]:
        """What is wrong with the server's index; empty when nothing is."""
        return self._connection.send(_calls.check_invariants())

    def close(self) -> None:
        """Ends the session: the server releases its locks and takes its pages back."""
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Lock(LockHandle):
    """A lock of the synchronous client, released on leaving its `with` block."""

    def __init__(
        self, connection: _Connection, session: Session, lock_id: int, tokens: int
    ) -> None:
        super().__init__(connection.sessions, session, lock_id, tokens)
        self._connection = connection

    def release(self) -> None:
        """Does nothing if the lock was released already."""
        self._connection.unlock(self)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            self.release()
        except PandoError:
            # The error of the block is the one to tell.
            if error is None:
                raise


class _Connection:
    """The channel and the thread that keeps the session alive."""

    def __init__(self, address: str, sessions: SessionTracker, timeout: float) -> None:
        self.sessions = sessions
        self.timeout = timeout
        self._channel = grpc.insecure_channel(
            target_of(address), options=CHANNEL_OPTIONS
        )
        self._methods: dict[str, Any] = {}
        self._closing = threading.Event()
        # Requests of the current stream; None half-closes it.
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._keep_session, name="pando-session", daemon=True
        )
        self._thread.start()

    def wait_opened(self) -> None:
        try:
            self.sessions.first.result(self.timeout)
        except FutureTimeoutError:
            raise self.sessions.not_opened(self.timeout) from None

    def send(self, call: _calls.Call[T]) -> T:
        with call.sending(self.sessions):
            method = self._methods.get(call.method)
            if method is None:
                method = self._methods[call.method] = self._channel.unary_unary(
                    call.method
                )
            response = method(call.request, timeout=self.timeout)
        return call.parse(response)

    def unlock(self, *locks: Lock) -> None:
        call = _calls.unlock(self.sessions, locks)
        if call is not None:
            self.send(call)

    def close(self) -> None:
        self.sessions.close()
        self._closing.set()
        self._requests.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT)
        self._channel.close()

    def _keep_session(self) -> None:
        open_stream = self._channel.stream_stream(OPEN_METHOD)
        while not self._closing.is_set():
            requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            self._requests = requests
            requests.put(self.sessions.open_request())
            # Also when close() came between the check above and the new queue.
            if self._closing.is_set():
                requests.put(None)
            try:
                for event in open_stream(iter(requests.get, None)):
                    self.sessions.handle(event)
                error: PandoError = UnavailableError("SESSION_ENDED", "server ended it")
            except grpc.RpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            except PandoError as unusable:
                error = unusable
            requests.put(None)
            self._closing.wait(self.sessions.broken(error))
