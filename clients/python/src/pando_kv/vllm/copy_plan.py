"""What the scheduler of the copy mode tells the workers, and they it."""

from __future__ import annotations

from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorMetadata,
    KVConnectorWorkerMetadata,
)


@dataclass(frozen=True)
class Copy:
    """Pages of Pando and blocks of vLLM, pairwise."""

    request_id: str
    page_ids: list[int]
    block_ids: list[int]


@dataclass
class CopyPlan(KVConnectorMetadata):  # type: ignore[misc]
    epoch: int = 0
    """The boot of pandod that the page ids belong to."""
    session_id: int = 0
    """The scheduler's, which has reserved the pages that the workers write."""
    loads: dict[int, Copy] = field(default_factory=dict)
    """Before the step, or beside it; by a number that is never used again."""
    lost_loads: dict[int, Copy] = field(default_factory=dict)
    """Numbered likewise. Of a session that is over: their pages may be others' by
    now."""
    saves: dict[int, Copy] = field(default_factory=dict)
    """After the step; numbered likewise."""
    overwritten: set[int] = field(default_factory=set)
    """Earlier saves of blocks that are others' from this step on."""


@dataclass
class CopyReport(KVConnectorWorkerMetadata):  # type: ignore[misc]
    done: dict[int, int] = field(default_factory=dict)
    """Workers whose part of a copy is over, on the device, too."""
    failed: set[int] = field(default_factory=set)
    """Copies of which nothing, or something wrong, was written."""

    def aggregate(self, other: KVConnectorWorkerMetadata) -> CopyReport:
        done = dict(self.done)
        for number, workers in other.done.items():
            done[number] = done.get(number, 0) + workers
        return CopyReport(done, self.failed | other.failed)
