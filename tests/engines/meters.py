"""Meters of the time that an engine spends on its cache."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any


class WireMeter:
    """Counts the calls that all clients of this process make to pandod.

    The native module makes its calls where this cannot see them: it is off meanwhile.
    """

    def __init__(self) -> None:
        from pando_kv._connection import Connection

        self.calls: Counter[str] = Counter()
        """By the method's name; those that are not made, or had begun and are not
        waited for, because pandod is away, do not count."""
        self.seconds = 0.0
        self.batches = 0
        """How often calls were begun together."""
        self._bytes = 0
        # Their bytes are counted when they are asked for: not while a call is timed.
        self._messages: list[tuple[Any, Any]] = []
        send = Connection.send
        put_off = Connection._put_off

        def name(call: Any) -> str:
            return call.method.path.rpartition("/")[2]

        def metered(connection: Any, call: Any, *first: Any) -> Any:
            parse = call.parse

            def remember(answer: Any) -> Any:
                self._messages.append((call.method.response, answer))
                return parse(answer)

            had_begun = any(first) and connection.presence.is_away
            if not had_begun:
                self.calls[name(call)] += 1
            self._messages.append((call.method.request, call.request))
            call.parse = remember
            begin = time.perf_counter()
            try:
                return send(connection, call, *first)
            finally:
                self.seconds += time.perf_counter() - begin

        def taken_back(connection: Any, call: Any) -> Any:
            self.calls -= Counter([name(call)])
            return put_off(connection, call)

        Connection._put_off = taken_back
        Connection.requests = None
        Connection.send = metered
        Connection.begin_together = self._timed(Connection.begin_together)

    def _timed(self, begin_calls: Callable[..., None]) -> Callable[..., None]:
        def begin_together(*given: Any) -> None:
            self.batches += 1
            begin = time.perf_counter()
            begin_calls(*given)
            self.seconds += time.perf_counter() - begin

        return begin_together

    def totals(self) -> dict[str, float]:
        self._bytes += sum(
            len(codec.encode(values)) for codec, values in self._messages
        )
        self._messages.clear()
        return {
            "calls": self.calls.total(),
            "batches": self.batches,
            "bytes": self._bytes,
            "calling": self.seconds,
        }


class Stopwatch:
    """Adds up the time in methods of objects; where one calls another, once."""

    def __init__(self, owner: Any, *names: str) -> None:
        self.seconds = 0.0
        self._is_running = False
        self.watch(owner, *names)

    def watch(self, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if self._is_running:
                return method(*given, **named)
            self._is_running = True
            begin = time.perf_counter()
            try:
                return method(*given, **named)
            finally:
                self.seconds += time.perf_counter() - begin
                self._is_running = False

        return call
