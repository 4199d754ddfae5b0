"""Calls that may fail without harm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from pando_kv import Client
from pando_kv._session import Session
from pando_kv.errors import AwayError, DrainingError, PandoError, UnavailableError

T = TypeVar("T")

_log = logging.getLogger("pando_kv.vllm")


class Access:
    """A client whose failures are misses: an engine goes on without its cache. One
    thread calls it."""

    def __init__(self, client: Client) -> None:
        """`client` has `away_after`: what gives back locks or pages while pandod is
        away is made when it answers again."""
        self.client = client

    @property
    def is_open(self) -> bool:
        """Whether pandod is asked at all."""
        return not self.client.is_away

    @property
    def session(self) -> Session | None:
        """The present one; None while there is none."""
        try:
            return self.client._sessions.current()
        except UnavailableError:
            return None

    def is_present(self, generation: int) -> bool:
        """Whether locks and pages of that session are not void."""
        session = self.session
        return session is not None and session.generation == generation

    def ask(self, call: Callable[[Client], T]) -> T | None:
        """The answer; None where there is none, at once while pandod is away."""
        try:
            return call(self.client)
        except (AwayError, DrainingError):
            # One that drains serves what it has admitted. What waits asks in each step;
            # the log would have a line for each.
            return None
        except PandoError as error:
            _log.warning("pandod: %s; going on without it", error)
            return None
