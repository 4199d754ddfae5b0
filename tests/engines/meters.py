"""Meters of the calls and the time that an engine spends on its cache."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any


class WireMeter:
    """A counter of the calls that all clients of this process make to pandod.

    It turns the native module off, because calls of that module bypass the counter.
    Use it from one thread.
    """

    def __init__(self) -> None:
        from pando_kv._connection import Connection

        self.calls: Counter[str] = Counter()
        """The number of calls by the name of the method. Calls that the client skips or
        gives up because pandod is away do not count."""
        self.seconds = 0.0
        self.batches = 0
        """The number of batches: calls that were begun together are one batch."""
        self._bytes = 0
        # totals() counts the bytes of the messages, so no timed call pays for that.
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
    """A sum of the seconds spent in methods of objects. A watched method that another
    one calls is not added a second time. Use it from one thread."""

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
