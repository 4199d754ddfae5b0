"""The KV connector that vLLM loads."""

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
from pando_kv.vllm.copy_scheduler import CopyScheduler
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages
from pando_kv.vllm.identity import digest_of
from pando_kv.vllm.pool_size import connect
from pando_kv.vllm.zero_scheduler import ZeroScheduler
from pando_kv.vllm.zero_worker import ZeroWorker
from pando_kv.vllm.zeroed_blocks import refuse_zeroed_blocks

_BLOCKS_DO = "; blocks do: PandoOffloadingSpec in docs/engines-vllm.md"


class PandoConnector(KVConnectorBase_V1):  # type: ignore[misc]
    """One object in vLLM's scheduler and one in each worker; `role` says which, and
    `pando_zero_copy` in which of the two ways pages are used.

    It does not declare SupportsHMA, so that vLLM keeps the KV of layers with windows as
    it keeps the others', in one group."""

    def __init__(
        self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any
    ) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self._is_zero_copy = self._switch("pando_zero_copy")
        self._is_async = self._switch("pando_async_copies")
        _refuse_what_is_not_supported(vllm_config, kv_cache_config, self._is_zero_copy)
        if self._is_async and self._is_zero_copy:
            raise ValueError(
                f"{CONNECTOR} does not support pando_async_copies together with "
                "pando_zero_copy"
            )
        if self._is_async:
            what = f"pando_async_copies of {CONNECTOR}"
            refuse_zeroed_blocks(what, vllm_config, kv_cache_config)
        self._wait = wait_seconds("pando_wait_ms", self._option("pando_wait_ms", 0))
        self._block_tokens = vllm_config.cache_config.block_size
        self._client = connect(self._kv_transfer_config, role.name.lower())
        self._model = self._option("pando_model", os.environ.get("PANDO_MODEL", ""))
        self._model = self._model or _served_model(vllm_config.model_config)
        ranks = vllm_config.parallel_config.tensor_parallel_size
        at_start(
            lambda: _require_pool(self._client, self._block_tokens, ranks, self._model)
        )
        self._scheduler: CopyScheduler | ZeroScheduler | None = None
        self._worker: CopyWorker | ZeroWorker | None = None
        if role == KVConnectorRole.SCHEDULER:
            self._scheduler = self._make_scheduler(vllm_config)
        else:
            self._worker = self._make_worker(vllm_config, kv_cache_config)

    def _make_scheduler(self, vllm_config: Any) -> CopyScheduler | ZeroScheduler:
        if not self._is_zero_copy:
            workers = vllm_config.parallel_config.world_size
            return CopyScheduler(self._client, self._block_tokens, workers, self._wait)
        limits = vllm_config.scheduler_config
        # The most pages that a step may need, so that Pando is asked once a step.
        stash = (
            limits.max_num_batched_tokens // self._block_tokens + limits.max_num_seqs
        )
        share = max(1, self._client.pool.capacity_pages // 16)
        return ZeroScheduler(
            self._client, self._block_tokens, min(stash, share), self._wait
        )

    def _make_worker(
        self, vllm_config: Any, kv_cache_config: Any
    ) -> CopyWorker | ZeroWorker:
        pages = StatedPages(
            self._model, digest_of(vllm_config), self._option("pando_page_format", "")
        )
        if not self._is_zero_copy:
            blocks = kv_cache_config.num_blocks
            return CopyWorker(self._client, _rank(), pages, blocks, self._is_async)
        return ZeroWorker(self._client, _rank(), pages, kv_cache_config, vllm_config)

    def _option(self, name: str, default: Any) -> Any:
        return self._kv_transfer_config.get_from_extra_config(name, default)

    def _switch(self, name: str) -> bool:
        value = self._option(name, False)
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}; must be true or false")
        return value

    @property
    def requires_kv_delivery(self) -> bool:
        """A save that is dropped is a miss later."""
        return False

    # In the workers.

    def get_mem_pool_context(self) -> AbstractContextManager[None] | None:
        if isinstance(self._worker, ZeroWorker):
            return self._worker.memory_context()
        return None

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        assert self._worker is not None
        self._worker.register(kv_caches, self._block_tokens)

    def handle_preemptions(self, kv_connector_metadata: Any) -> None:
        """The first that vLLM calls for a step; see zeroed_blocks.py."""
        assert self._worker is not None
        self._worker.begin(kv_connector_metadata)

    def start_load_kv(self, forward_context: Any, **_: Any) -> None:
        assert self._worker is not None
        self._worker.load(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing: what a step reads is loaded before it is queued."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **_: Any
    ) -> None:
        """Nothing: all layers are saved after the step."""

    def wait_for_save(self) -> None:
        assert self._worker is not None
        self._worker.save(self._get_connector_metadata())

    def get_finished(
        self, finished_req_ids: set[str]
    ) -> tuple[set[str] | None, set[str] | None]:
        assert self._worker is not None
        return None, self._worker.take_received()

    def get_block_ids_with_load_errors(self) -> set[int]:
        assert self._worker is not None
        return self._worker.take_bad_blocks()

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        assert self._worker is not None
        return self._worker.report()

    # In the scheduler.

    def bind_kv_cache_manager(self, kv_cache_manager: Any) -> None:
        super().bind_kv_cache_manager(kv_cache_manager)
        if isinstance(self._scheduler, ZeroScheduler):
            self._scheduler.bind(kv_cache_manager)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        assert self._scheduler is not None
        matched = self._scheduler.matched_tokens(request, num_computed_tokens)
        return matched, self._is_async and bool(matched)

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        assert self._scheduler is not None
        (block_ids,) = blocks.get_block_ids()
        self._scheduler.will_load(request, list(block_ids), num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        assert self._scheduler is not None
        return self._scheduler.plan(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        assert self._scheduler is not None
        self._scheduler.take(connector_output.kv_connector_worker_meta)

    def request_finished(
        self, request: Any, block_ids: list[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        assert self._scheduler is not None
        self._scheduler.end(request.request_id, block_ids)
        return False, None

    def has_pending_push_work(self) -> bool:
        """While it has, vLLM goes on with steps, and so asks the workers."""
        assert self._scheduler is not None
        return self._scheduler.has_copies_under_way

    def reset_cache(self) -> bool:
        if self._scheduler is not None:
            self._scheduler.reset()
        return True

    def shutdown(self) -> None:
        self._client.close()


def _refuse_what_is_not_supported(
    vllm_config: Any, kv_cache_config: Any, is_zero_copy: bool
) -> None:
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
    }
    if is_zero_copy:
        refused |= {
            "--async-scheduling together with pando_zero_copy": (
                vllm_config.scheduler_config.async_scheduling
            ),
            f"speculative decoding together with pando_zero_copy{_BLOCKS_DO}": (
                vllm_config.speculative_config is not None
            ),
            "--enable-sleep-mode together with pando_zero_copy": (
                vllm_config.model_config.enable_sleep_mode
            ),
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
