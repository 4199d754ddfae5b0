"""A counter of a client's calls to pandod. It also counts the calls without an answer
in time that the engine's thread made. That is the thread that starts the counter."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pando_kv import Client
from pando_kv.errors import DeadlineError


class Calls:
    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.unanswered = 0


@contextlib.contextmanager
def counted(client: Client) -> Iterator[Calls]:
    calls, connection = Calls(), client._connection
    send, engine = connection.send, threading.current_thread()

    def count(call: Any, *given: Any) -> Any:
        try:
            answer = send(call, *given)
        except DeadlineError:
            calls.unanswered += threading.current_thread() is engine
            raise
        if not client.is_away:
            calls.made[call.method.path.rpartition("/")[2]] += 1
        return answer

    connection.send = count
    try:
        yield calls
    finally:
        del connection.send
