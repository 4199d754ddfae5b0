"""What an engine spends on its cache."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any


class WireMeter:
    """Counts the calls that all clients of this process make to pandod."""

    def __init__(self) -> None:
        from pando_kv._connection import Connection

        self.calls = 0
        self.bytes = 0
        self.seconds = 0.0
        send = Connection.send

        def metered(connection: Any, call: Any) -> Any:
            def parse(answer: bytes) -> Any:
                self.bytes += len(answer)
                return call.parse(answer)

            self.calls += 1
            self.bytes += len(call.request)
            begin = time.perf_counter()
            try:
                return send(connection, dataclasses.replace(call, parse=parse))
            finally:
                self.seconds += time.perf_counter() - begin

        Connection.send = metered

    def totals(self) -> dict[str, float]:
        return {"calls": self.calls, "bytes": self.bytes, "seconds": self.seconds}


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
