"""vLLM's own Scheduler and Pando's connector on both sides of it, around a model that
only notes what it has read: the KV of a token says which tokens came before it.

Each step reads the KV of all tokens before its own, and fails if that is not theirs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines.models import LAYERS
from engines.vllm.late_stream import LateStream
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS
from engines.vllm.scheduler_alone import SchedulerAlone
from pando_kv.vllm import connector, copy_worker
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.v1.outputs import KVConnectorOutput

# The words of a token, in a layer.
_WORDS = BLOCK_BYTES // BLOCK_TOKENS // 8


class EngineAlone(SchedulerAlone):
    """`stream` is where its copies are queued, which have one of their own."""

    def __init__(
        self, model: Path, address: str, stream: LateStream, **arguments: Any
    ) -> None:
        super().__init__(
            model,
            address,
            zero_copy=False,
            options={"pando_async_copies": True},
            **arguments,
        )
        self.stream = stream
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connector, "_rank", lambda: 0)
            patch.setattr(copy_worker, "stream_of", lambda device, is_own: stream)
            self.worker = connector.PandoConnector(
                self.scheduler.vllm_config,
                KVConnectorRole.WORKER,
                self.scheduler.kv_cache_config,
            )
            blocks = self.scheduler.kv_cache_config.num_blocks
            self._memory = torch.zeros(
                LAYERS, blocks, BLOCK_TOKENS, _WORDS, dtype=torch.int64
            )
            self.worker.register_kv_caches(
                {f"layer.{n}": kv for n, kv in enumerate(self._memory)}
            )
        self.fault: Callable[[Any], Any] = contextlib.nullcontext
        self._blocks: dict[str, list[int]] = {}

    @property
    def free_blocks(self) -> int:
        return self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()

    def work(self, output: Any) -> KVConnectorOutput:
        plan = output.kv_connector_metadata
        self.loads += plan.loads.values()
        worker = self.worker
        with self.fault(plan):
            worker.handle_preemptions(plan)
            worker.bind_connector_metadata(plan)
            assert not output.has_sync_kv_loads
            self._compute(output)
            worker.start_load_kv(None)
            worker.wait_for_save()
            _, received = worker.get_finished(output.finished_req_ids)
        return KVConnectorOutput(
            finished_recving=received or None,
            invalid_block_ids=worker.get_block_ids_with_load_errors(),
            kv_connector_worker_meta=worker.build_connector_worker_meta(),
        )

    def _compute(self, output: Any) -> None:
        for name, computed in self._place(output):
            end = computed + output.num_scheduled_tokens[name]
            wanted = _words_of(self.scheduler.requests[name].all_token_ids[:end])
            places = torch.arange(end)
            blocks = torch.tensor(self._blocks[name])[places // BLOCK_TOKENS]
            read = self._memory[:, blocks[:computed], places[:computed] % BLOCK_TOKENS]
            right = wanted[:computed, None].expand(LAYERS, -1, _WORDS)
            assert torch.equal(read, right), f"{name} reads what is not its own"
            self._memory[:, blocks[computed:], places[computed:] % BLOCK_TOKENS] = (
                wanted[computed:, None]
            )

    def _place(self, output: Any) -> list[tuple[str, int]]:
        """Requests of the step and what is computed of them; notes their blocks."""
        found = []
        for new in output.scheduled_new_reqs:
            self._blocks[new.req_id] = list(new.block_ids[0])
            found.append((new.req_id, new.num_computed_tokens))
        cached = output.scheduled_cached_reqs
        for name, added, computed in zip(
            cached.req_ids,
            cached.new_block_ids,
            cached.num_computed_tokens,
            strict=True,
        ):
            if name in cached.resumed_req_ids:
                self._blocks[name] = []
            self._blocks[name] += added[0] if added is not None else []
            found.append((name, computed))
        return found

    def close(self) -> None:
        self.worker.shutdown()
        super().close()


def _words_of(tokens: list[int]) -> torch.Tensor:
    """For each token a word that tells it, and all before it, from others."""
    words, word = np.empty(len(tokens), np.int64), 1
    for place, token in enumerate(tokens):
        word = (word * 1_000_003 + token + 1) % (1 << 61)
        words[place] = word
    return torch.from_numpy(words)
