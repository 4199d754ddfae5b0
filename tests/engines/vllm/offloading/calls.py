"""Counts the calls of a client, and those that waited for pandod in vain."""

from __future__ import annotations

import contextlib
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
    send = connection.send

    def count(call: Any, *given: Any) -> Any:
        try:
            answer = send(call, *given)
        except DeadlineError:
            calls.unanswered += 1
            raise
        if not client.is_away:
            calls.made[call.method.path.rpartition("/")[2]] += 1
        return answer

    connection.send = count
    try:
        yield calls
    finally:
        del connection.send
