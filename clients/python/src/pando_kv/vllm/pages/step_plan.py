"""What vLLM's scheduler tells the workers, and they it."""

from __future__ import annotations

from dataclasses import dataclass

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorMetadata,
    KVConnectorWorkerMetadata,
)


@dataclass
class StepPlan(KVConnectorMetadata):  # type: ignore[misc]
    session_id: int
    """The scheduler's, which has reserved the pages that the workers write."""


@dataclass
class StepDone(KVConnectorWorkerMetadata):  # type: ignore[misc]
    """Told after each step, so that the scheduler's connector is asked to publish."""

    def aggregate(self, other: KVConnectorWorkerMetadata) -> StepDone:
        return self
