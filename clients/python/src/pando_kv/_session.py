"""The client's knowledge of its session, independent of threads or asyncio."""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from pando_kv._proto.pando.v1 import session_pb2
from pando_kv.errors import PandoError, SessionLostError, UnavailableError
from pando_kv.layout import PoolDescription
from pando_kv.results import PageRoom

OPEN_METHOD = "/pando.v1.Sessions/Open"

_FIRST_DELAY = 0.02
_MAX_DELAY = 0.5

_log = logging.getLogger("pando_kv")


@dataclass(frozen=True, eq=False)
class Session:
    """One session of a client with pandod. Immutable, so any thread may read it."""

    session_id: int
    epoch: int
    generation: int
    """The number of this session among the client's sessions, from 1 on."""
    pool: PoolDescription
    # The first id is random and has 63 bits, so counting on never exceeds 64 bits.
    _request_ids: Iterator[int] = field(
        default_factory=lambda: itertools.count(1 + secrets.randbits(63)),
        init=False,
        repr=False,
    )

    def next_request_id(self) -> int:
        """Returns a request id that no other request of the session has. Any thread may
        call it."""
        return next(self._request_ids)


class SessionTracker:
    """The state of a client's session through breaks, resumptions and new sessions.
    Owned by a client.

    One thread or task at a time feeds the stream's events in (`open_request`, `handle`,
    `broken`); any thread may read the state. The session is one reference to an
    immutable object, so a caller always sees an id and an epoch that belong together.
    """

    def __init__(
        self, name: str, on_session_lost: Callable[[Session], None] | None
    ) -> None:
        self._name = name
        self._on_session_lost = on_session_lost
        self._session: Session | None = None
        self._generation = 0
        self._delay = _FIRST_DELAY
        self._closed = False
        self.draining = False
        # The room as of the last answer that stated it.
        self.room: PageRoom | None = None
        self._memory_of: Session | None = None
        self._last_error: PandoError | None = None
        # The first session, or the error that prevents a session.
        self.first: Future[Session] = Future()

    def open_request(self) -> bytes:
        """Returns the request that opens a session, or resumes the present one."""
        session = self._session
        request = session_pb2.OpenSessionRequest(
            client_name=self._name,
            resume_session_id=session.session_id if session else 0,
        )
        return bytes(request.SerializeToString())

    def handle(self, data: bytes) -> bool:
        """Handles an event of the stream. Returns True if the event opened or resumed a
        session."""
        event = session_pb2.SessionEvent.FromString(data)
        if event.HasField("opened"):
            self._opened(event.opened)
            return not self._closed
        if event.HasField("draining"):
            self.draining = True
        return False

    def broken(self, error: PandoError) -> float:
        """Records that the stream ended with this error. Returns the seconds to wait
        before the next stream."""
        self._last_error = error
        if isinstance(error, SessionLostError) and self._session is not None:
            self._lose()
            return 0
        never_opened = not self.first.done() and not self._closed
        if never_opened and not isinstance(error, UnavailableError):
            self.first.set_exception(error)
        delay = self._delay
        self._delay = min(2 * delay, _MAX_DELAY)
        return delay

    def close(self) -> None:
        self._closed = True
        self._session = None

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def generation(self) -> int:
        return self._generation

    def not_opened(self, timeout: float, refused: str) -> UnavailableError:
        """Returns the error that says why there was no first session in time. `refused`
        says why the socket refuses this user, or is empty."""
        cause = refused or self._last_error
        why = f": {cause}" if cause else ""
        return UnavailableError("NO_SESSION", f"no session within {timeout} s{why}")

    def require_open(self) -> None:
        if self._closed:
            raise UnavailableError("CLIENT_CLOSED", "the client is closed")

    def is_current(self, session: Session) -> bool:
        return session is self._session

    def current(self) -> Session:
        session = self._session
        if session is None:
            self.require_open()
            why = "a new session is being opened"
            if self._generation == 0:
                why = "not connected: use `async with`, or call connect()"
            raise UnavailableError("NO_SESSION", why)
        return session

    def require_current(self, session: Session, handle: str) -> None:
        """Raises SessionLostError for a handle of an earlier session, without asking
        pandod."""
        if not self.is_current(session):
            self.require_open()
            raise _lost(handle, session.generation)

    def require_generation(self, generation: int | None) -> Session:
        session = self.current()
        if generation is not None and generation != session.generation:
            raise _lost("page_ids", generation)
        return session

    def memory_attached(self, session: Session) -> None:
        """Records that the block memory was attached for this session."""
        self._memory_of = session

    def require_memory(self) -> Session:
        """Returns the current session. Raises SessionLostError if the block memory was
        last attached for an earlier session, because places may then lie in other
        memory. A client that attaches no block memory, such as a scheduler's, passes.
        """
        session = self.current()
        attached = self._memory_of
        if attached is not None and attached is not session:
            raise _lost("block memory", attached.generation)
        return session

    def _opened(self, opened: session_pb2.SessionOpened) -> None:
        if self._closed:
            return
        self._delay = _FIRST_DELAY
        self.draining = False
        session = self._session
        if session is not None:
            if (session.session_id, session.epoch) == (opened.session_id, opened.epoch):
                return
            self._lose()
        self._session = Session(
            session_id=opened.session_id,
            epoch=opened.epoch,
            generation=self._generation + 1,
            pool=PoolDescription.from_message(opened.pool),
        )
        self._generation += 1
        if not self.first.done():
            self.first.set_result(self._session)

    def _lose(self) -> None:
        """Ends the session. Old handles are refused before the caller is told, and the
        caller is told before there is a new session."""
        session, self._session = self._session, None
        self.room = None
        if session is None or self._on_session_lost is None:
            return
        try:
            self._on_session_lost(session)
        except Exception:
            _log.exception("on_session_lost failed")


def _lost(handle: str, generation: int) -> SessionLostError:
    return SessionLostError(
        "SESSION_LOST",
        f"{handle} of session {generation}, which is not the client's session now: "
        "drop every lock, page id and block memory of a session that is over",
    )
