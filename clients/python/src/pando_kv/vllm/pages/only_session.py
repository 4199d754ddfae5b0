"""The session of an engine whose KV memory is the pool. The engine ends with it."""

from __future__ import annotations

import logging

from pando_kv import Client
from pando_kv.errors import AwayError, PandoError, SessionLostError

_log = logging.getLogger("pando_kv.vllm")


class OnlySession:
    """The session whose pages are the engine's KV memory. Once it is lost, the methods
    raise RuntimeError, which ends the engine. PageScheduler owns it; the scheduler's
    thread alone calls it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._generation = client.generation
        self.session_id = client.session_id

    def require(self) -> None:
        """Raises RuntimeError if the session is lost."""
        if self._client.generation != self._generation:
            self._end("pandod has begun anew")

    def go_on(self, error: PandoError) -> None:
        """Lets the engine go on without the answer to a failed call. Logs the error,
        except an AwayError, which the client has logged. Raises RuntimeError if the
        session is lost."""
        if isinstance(error, SessionLostError):
            self._end(error.message)
        if not isinstance(error, AwayError):
            _log.warning("pandod: %s; going on without it", error)

    def _end(self, why: str) -> None:
        raise RuntimeError(
            f"the session with pandod is lost ({why}): the blocks of this engine are "
            "void, and its KV memory is not the pool's any more. Restart the engine."
        )
