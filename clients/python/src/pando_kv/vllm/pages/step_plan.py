"""The messages between PandoConnector's objects in vLLM's scheduler and workers."""

from __future__ import annotations

from dataclasses import dataclass

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorMetadata,
    KVConnectorWorkerMetadata,
)


@dataclass
class StepPlan(KVConnectorMetadata):  # type: ignore[misc]
    """The message from the scheduler to the workers before each step."""

    session_id: int
    """The scheduler's session, which has reserved the pages that the workers write."""


@dataclass
class StepDone(KVConnectorWorkerMetadata):  # type: ignore[misc]
    """The message from a worker to the scheduler after each step. It has no content,
    but makes vLLM call the scheduler's connector, which then publishes pages."""

    def aggregate(self, other: KVConnectorWorkerMetadata) -> StepDone:
        return self
