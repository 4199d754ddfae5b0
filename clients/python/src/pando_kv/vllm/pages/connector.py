"""The KV connector that vLLM loads, in the scheduler and in each worker."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorWorkerMetadata,
)

from pando_kv import Client
from pando_kv._open_pool import at_start
from pando_kv._side_calls import wait_seconds
from pando_kv.vllm import CONNECTOR
from pando_kv.vllm.identity import digest_of
from pando_kv.vllm.pages.pool_size import connect
from pando_kv.vllm.pages.scheduler import PageScheduler
from pando_kv.vllm.pages.stated_pages import StatedPages
from pando_kv.vllm.pages.step_plan import StepDone
from pando_kv.vllm.pages.worker import PageWorker

_BLOCKS_DO = "; blocks do: PandoOffloadingSpec in docs/engines-vllm.md"


class PandoConnector(KVConnectorBase_V1):  # type: ignore[misc]
    """The connector of one process. vLLM makes one in its scheduler and one in each
    worker, and owns it; `role` says which of them this is. The thread of that scheduler
    or worker alone calls it.

    It does not declare SupportsHMA. vLLM then keeps the KV of layers with sliding
    windows like that of all other layers, in one group."""

    def __init__(
        self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any
    ) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        _refuse_what_is_not_supported(vllm_config, kv_cache_config)
        self._wait = wait_seconds("pando_wait_ms", self._option("pando_wait_ms", 0))
        self._block_tokens = vllm_config.cache_config.block_size
        self._client = connect(self._kv_transfer_config, role.name.lower())
        self._model = self._option("pando_model", os.environ.get("PANDO_MODEL", ""))
        self._model = self._model or _served_model(vllm_config.model_config)
        ranks = vllm_config.parallel_config.tensor_parallel_size
        at_start(
            lambda: _require_pool(self._client, self._block_tokens, ranks, self._model)
        )
        self._scheduler: PageScheduler | None = None
        self._worker: PageWorker | None = None
        if role == KVConnectorRole.SCHEDULER:
            self._scheduler = self._make_scheduler(vllm_config)
        else:
            self._worker = self._make_worker(vllm_config, kv_cache_config)

    def _make_scheduler(self, vllm_config: Any) -> PageScheduler:
        limits = vllm_config.scheduler_config
        # A step needs at most this many pages, so one call a step can reserve them all.
        stash = (
            limits.max_num_batched_tokens // self._block_tokens + limits.max_num_seqs
        )
        share = max(1, self._client.pool.capacity_pages // 16)
        return PageScheduler(
            self._client, self._block_tokens, min(stash, share), self._wait
        )

    def _make_worker(self, vllm_config: Any, kv_cache_config: Any) -> PageWorker:
        pages = StatedPages(
            self._model, digest_of(vllm_config), self._option("pando_page_format", "")
        )
        return PageWorker(self._client, _rank(), pages, kv_cache_config, vllm_config)

    def _option(self, name: str, default: Any) -> Any:
        return self._kv_transfer_config.get_from_extra_config(name, default)

    @property
    def requires_kv_delivery(self) -> bool:
        """Returns False, because KV that is not published is only a later miss."""
        return False

    # vLLM calls the methods below in its workers.

    def get_mem_pool_context(self) -> AbstractContextManager[None]:
        assert self._worker is not None
        return self._worker.memory_context()

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        assert self._worker is not None
        self._worker.register(kv_caches, self._block_tokens)

    def start_load_kv(self, forward_context: Any, **_: Any) -> None:
        """Begins the step in this worker. Loads nothing, because cached KV is in vLLM's
        KV memory already."""
        assert self._worker is not None
        self._worker.begin_step(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Does nothing, because nothing is loaded."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **_: Any
    ) -> None:
        """Does nothing, because pages are published where the model writes them."""

    def wait_for_save(self) -> None:
        """Does nothing, because nothing is saved."""

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata:
        return StepDone()

    # vLLM calls the methods below in its scheduler.

    def bind_kv_cache_manager(self, kv_cache_manager: Any) -> None:
        super().bind_kv_cache_manager(kv_cache_manager)
        assert self._scheduler is not None
        self._scheduler.bind(kv_cache_manager)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Returns 0 tokens to load, or None in their place while the request waits for
        a tier; vLLM then leaves the request in its queue."""
        assert self._scheduler is not None
        return (None if self._scheduler.is_held_back(request) else 0), False

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        """Does nothing, because nothing is to be loaded."""

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        assert self._scheduler is not None
        return self._scheduler.plan(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        assert self._scheduler is not None
        self._scheduler.finish_step()

    def request_finished(
        self, request: Any, block_ids: list[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        assert self._scheduler is not None
        self._scheduler.end(request.request_id, block_ids)
        return False, None

    def reset_cache(self) -> bool:
        if self._scheduler is not None:
            self._scheduler.reset()
        return True

    def shutdown(self) -> None:
        self._client.close()


def _refuse_what_is_not_supported(vllm_config: Any, kv_cache_config: Any) -> None:
    parallel = vllm_config.parallel_config
    groups = len(kv_cache_config.kv_cache_groups)
    refused = {
        f"a model with {groups} groups of KV caches (hybrid models){_BLOCKS_DO}": (
            groups != 1
        ),
        "--pipeline-parallel-size above 1": parallel.pipeline_parallel_size > 1,
        "--decode-context-parallel-size above 1": (
            parallel.decode_context_parallel_size > 1
        ),
        "--prefill-context-parallel-size above 1": (
            parallel.prefill_context_parallel_size > 1
        ),
        "--async-scheduling": vllm_config.scheduler_config.async_scheduling,
        f"speculative decoding{_BLOCKS_DO}": (
            vllm_config.speculative_config is not None
        ),
        "--enable-sleep-mode": vllm_config.model_config.enable_sleep_mode,
    }
    for what, is_so in refused.items():
        if is_so:
            raise ValueError(f"{CONNECTOR} does not support {what}")


def _served_model(config: Any) -> str:
    name = config.served_model_name or config.model
    return str(name if isinstance(name, str) else name[0])


def _require_pool(client: Client, block_tokens: int, ranks: int, model: str) -> None:
    pool = client.pool
    needed = [("--pool-shards", str(len(pool.shards)), str(ranks))]
    if not pool.is_open:
        needed += [
            ("--model", repr(pool.model), repr(model)),
            ("--page-tokens", str(pool.layout.page_tokens), str(block_tokens)),
        ]
    for name, has, wanted in needed:
        if has != wanted:
            raise ValueError(f"pandod has {name} {has}; this engine needs {wanted}")


def _rank() -> int:
    from vllm.distributed.parallel_state import get_tensor_model_parallel_rank

    return int(get_tensor_model_parallel_rank())
