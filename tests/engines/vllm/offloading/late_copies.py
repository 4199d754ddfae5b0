"""Copies that are done late, as on the streams of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pando_kv.vllm.offloading import worker
from pando_kv.vllm.offloading.host_copies import HostCopies


def do_copies_late(monkeypatch: Any, how_many: Callable[[int], int]) -> None:
    """Replaces the copies of engines that are made from now on by late copies.

    Transfers are done in order. When an engine asks for finished transfers, `how_many`
    gets the number under way and returns how many of them to do. The others are done
    when the engine waits for them."""

    class LateCopies(HostCopies):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self._queue: list[tuple[int, Callable[[], None]]] = []

        def _transfer(self, job_id: int, *given: Any, **named: Any) -> None:
            do = super()._transfer
            self._queue.append((job_id, lambda: do(job_id, *given, **named)))

        @property
        def is_idle(self) -> bool:
            return not self._queue and super().is_idle

        def take_finished(self) -> list[Any]:
            self._do(how_many(len(self._queue)))
            return super().take_finished()

        def wait(self, job_ids: set[int]) -> None:
            waited = [n for n, (job, _) in enumerate(self._queue) if job in job_ids]
            self._do(waited[-1] + 1 if waited else 0)

        def close(self) -> None:
            self._do(len(self._queue))
            super().close()

        def _do(self, count: int) -> None:
            for _, do in self._queue[:count]:
                do()
            del self._queue[:count]

    monkeypatch.setattr(worker, "_copies_of", lambda _: LateCopies)
