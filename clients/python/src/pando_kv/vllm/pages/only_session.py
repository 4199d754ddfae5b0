"""The session that an engine whose KV memory is the pool cannot outlive."""

from __future__ import annotations

import logging

from pando_kv import Client
from pando_kv.errors import AwayError, PandoError, SessionLostError

_log = logging.getLogger("pando_kv.vllm")


class OnlySession:
    """Its pages are the engine's KV memory: a RuntimeError, which ends the engine, once
    it is lost."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._generation = client.generation
        self.session_id = client.session_id

    def require(self) -> None:
        if self._client.generation != self._generation:
            self._end("pandod has begun anew")

    def go_on(self, error: PandoError) -> None:
        """After a call that failed, if that is possible."""
        if isinstance(error, SessionLostError):
            self._end(error.message)
        if not isinstance(error, AwayError):
            _log.warning("pandod: %s; going on without it", error)

    def _end(self, why: str) -> None:
        raise RuntimeError(
            f"the session with pandod is lost ({why}): the blocks of this engine are "
            "void, and its KV memory is not the pool's any more. Restart the engine."
        )
