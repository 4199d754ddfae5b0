"""The spec that vLLM loads in the scheduler's process and in each worker's."""

from __future__ import annotations

import os
import threading

from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    OffloadingManager,
    OffloadingSpec,
    OffloadingWorker,
)
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv import Client
from pando_kv.vllm.offloading.scheduler import SharedBlocks
from pando_kv.vllm.offloading.step_access import CALL_SECONDS
from pando_kv.vllm.offloading.worker import PandoWorker


class PandoOffloadingSpec(OffloadingSpec):  # type: ignore[misc]
    """The spec through which vLLM's OffloadingConnector uses Pando. vLLM makes one in
    the scheduler and one in each worker, and asks each for its half."""

    def __init__(self, config: OffloadingConfig) -> None:
        super().__init__(config)
        if config.parallel.pp_size > 1:
            raise ValueError(
                "PandoOffloadingSpec does not support --pipeline-parallel-size above 1"
            )
        # If this is true, vLLM lets only one rank store.
        self.replicated_layout = config.replicated_layout
        self._manager: SharedBlocks | None = None
        self._worker: PandoWorker | None = None

    def get_manager(self) -> OffloadingManager:
        if self._manager is None:
            client, is_changed = self._connect("scheduler", CALL_SECONDS)
            announcer = None
            # vLLM takes the manager's events only if it publishes KV events.
            if self.config.enable_kv_cache_events:
                announcer, _ = self._connect("events")
            self._manager = SharedBlocks(client, is_changed, self.config, announcer)
        return self._manager

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        if self._worker is None:
            side = f"rank {self.config.parallel.rank}"
            client, is_changed = self._connect(side, CALL_SECONDS)
            self._worker = PandoWorker(client, is_changed, self.config, kv_caches)
        return self._worker

    def _connect(
        self, side: str, away_after: float | None = None
    ) -> tuple[Client, threading.Event]:
        is_changed = threading.Event()
        client = Client(
            self.extra_config.get("pando_address") or "",
            name=f"vllm {side} {os.getpid()}",
            token=os.environ.get("PANDO_TOKEN") or None,
            on_session_lost=lambda _: is_changed.set(),
            away_after=away_after,
        )
        return client, is_changed
