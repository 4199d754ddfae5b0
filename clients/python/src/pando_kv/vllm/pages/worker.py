"""The part of PandoConnector in vLLM's workers: it makes the mapped pool vLLM's KV
memory."""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pando_kv import Client, KvLayout, LayoutMismatchError, LayoutOrder, MappedPool
from pando_kv._open_pool import at_start
from pando_kv._same_device import require_same_device
from pando_kv.errors import PandoError
from pando_kv.vllm.pages.foreseen_blocks import foreseen_blocks
from pando_kv.vllm.pages.stated_pages import StatedPages, format_of
from pando_kv.vllm.pages.step_plan import StepPlan

_log = logging.getLogger("pando_kv.vllm")


class PageWorker:
    """The mapped pool of one vLLM worker. The worker's connector owns it, and the
    worker's thread alone calls it; a thread of its own makes the link to the
    scheduler's session.

    vLLM allocates its KV memory with one call of `torch.zeros`, which returns the pool
    here. If vLLM allocates in another way, the engine does not start.
    """

    def __init__(
        self,
        client: Client,
        shard: int,
        pages: StatedPages,
        kv_cache_config: Any,
        vllm_config: Any,
    ) -> None:
        self._client = client
        self._shard = shard
        self._stated = pages
        self._tensor = _only_tensor(kv_cache_config)
        self._kv_cache_config = kv_cache_config
        self._vllm_config = vllm_config
        self._layers = len(self._tensor.layers)
        self._pool: MappedPool | None = None
        self._memory: _PoolForZeros | None = None
        self._linked_to = 0
        self._linking: threading.Thread | None = None

    def memory_context(self) -> AbstractContextManager[None]:
        """Maps the pool, and returns the context in which vLLM allocates its KV memory.
        Raises ValueError if the engine does not fit the pool."""
        self._pool = at_start(self._attach)
        memory = self._pool.torch().memory(self._shard)
        self._memory = _PoolForZeros(memory[: self._tensor.size].view(torch.int8))
        return self._memory

    def register(self, kv_caches: dict[str, torch.Tensor], block_tokens: int) -> None:
        """Checks that vLLM's KV tensors are exactly the pool's pages. Raises ValueError
        if the engine does not fit the pool, and RuntimeError if the tensors lie
        elsewhere; both name the difference."""
        assert self._pool is not None and self._memory is not None
        if self._memory.uses != 1:
            raise RuntimeError(
                f"vLLM has allocated its KV memory in {self._memory.uses} calls that "
                "this version of pando-kv knows; it needs 1"
            )
        first = next(iter(kv_caches.values()))
        self._require_layout(self._stated.format or format_of(first), block_tokens)
        base = self._pool.torch().memory(self._shard).data_ptr()
        layout = self._pool.layout
        for layer, name in enumerate(self._tensor.layers):
            expected = base + layer * layout.layer_stride
            if kv_caches[name].data_ptr() != expected:
                raise RuntimeError(
                    f"the KV memory of layer '{name}' is not in its place in the pool"
                )

    def begin_step(self, plan: StepPlan) -> None:
        """Links this process to the scheduler's session if it is not linked yet. A
        thread makes the link, so the step does not wait for pandod."""
        is_linking = self._linking is not None and self._linking.is_alive()
        if self._linked_to != plan.session_id and not is_linking:
            self._linking = threading.Thread(
                target=self._link_to, args=(plan.session_id,), daemon=True
            )
            self._linking.start()

    def _link_to(self, session_id: int) -> None:
        try:
            self._client.link_session(session_id)
            self._linked_to = session_id
        except PandoError as error:
            _log.warning("pandod: %s; tried again with the next step", error)

    def _attach(self) -> MappedPool:
        if self._client.pool.is_open:
            self._say_layout()
        _require_capacity(self._client.pool.capacity_pages, self._tensor)
        return self._client.attach_pool(shards=[self._shard])

    def _say_layout(self) -> None:
        """Tells an open pool the layout of this engine, which the pool then takes."""
        page_format = self._stated.format
        if not page_format:
            blocks = foreseen_blocks(self._kv_cache_config, self._vllm_config)
            page_format = format_of(blocks, self._vllm_config.device_config.device_type)
        (group,) = self._kv_cache_config.kv_cache_groups
        self._require_layout(page_format, group.kv_cache_spec.block_size)

    def _require_layout(self, page_format: str, block_tokens: int) -> None:
        pool, tensor = self._client.pool, self._tensor
        page_bytes = self._layers * min(tensor.layer_stride, tensor.block_stride)
        is_layer_first = tensor.layer_stride > tensor.block_stride
        order = LayoutOrder.LAYER_FIRST if is_layer_first else LayoutOrder.PAGE_FIRST
        layout = KvLayout.opaque(
            capacity_pages=pool.capacity_pages,
            layers=self._layers,
            page_bytes=page_bytes,
            page_tokens=block_tokens,
            order=order,
            page_format=page_format,
        )
        try:
            # This mapping serves only the comparison, and is closed at once.
            self._client.attach_pool(
                expected_layout=layout,
                model=self._stated.model,
                model_digest=self._stated.digest,
                shards=[self._shard],
            ).close()
        except LayoutMismatchError as error:
            raise ValueError(
                f"this engine does not fit the pool of pandod: {error.message}"
            ) from error


class _PoolForZeros(TorchFunctionMode):  # type: ignore[misc]
    """The context in which `torch.zeros(n, dtype=torch.int8, device=...)` returns the
    pool, if the pool has n bytes. PageWorker owns it; it acts on the thread that enters
    it. That call raises ValueError if the pool is on another device."""

    def __init__(self, memory: torch.Tensor) -> None:
        super().__init__()
        self._memory = memory
        self.uses = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        is_kv_memory = (
            func is torch.zeros
            and args == (self._memory.numel(),)
            and kwargs.get("dtype") is torch.int8
            and "device" in kwargs
        )
        if is_kv_memory:
            require_same_device(self._memory.device, torch.device(kwargs["device"]))
            self.uses += 1
            return self._memory
        return func(*args, **kwargs)


def _only_tensor(kv_cache_config: Any) -> Any:
    tensors = kv_cache_config.kv_cache_tensors
    if len(tensors) != 1 or tensors[0].offset != 0:
        raise ValueError(
            f"PandoConnector needs one KV cache tensor for all layers; this model has "
            f"{len(tensors)}. Blocks need none: PandoOffloadingSpec in "
            "docs/engines-vllm.md"
        )
    return tensors[0]


def _require_capacity(capacity_pages: int, tensor: Any) -> None:
    page_bytes = len(tensor.layers) * min(tensor.layer_stride, tensor.block_stride)
    blocks = tensor.size // page_bytes
    if blocks != capacity_pages:
        raise ValueError(
            f"the engine has {blocks} blocks and the pool of pandod "
            f"{capacity_pages} pages; start the engine with "
            f"--num-gpu-blocks-override {capacity_pages}"
        )
