"""The copy mode in vLLM's workers: copies between vLLM's blocks and Pando's pages.

Copies are queued where the model's steps are, on the same stream, so that nothing of
vLLM's has to be held back for them; a save is reported once the device has done it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch

from pando_kv import Client, KvLayout, LayoutMismatchError, MappedPool, SessionLink
from pando_kv._same_device import require_same_device
from pando_kv.errors import PandoError
from pando_kv.vllm.copy_plan import Copy, CopyPlan, CopyReport

_log = logging.getLogger("pando_kv.vllm")

# Whose bytes mean the same in each engine.
_PLAIN_TYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class StatedPages:
    """What engines that share pages must state alike, beside sizes."""

    model: str
    format: str
    """Names the inside of a page; empty: what is seen of vLLM's tensors."""


class CopyWorker:
    """Owned by a worker's connector; its thread alone calls it."""

    def __init__(self, client: Client, shard: int, pages: StatedPages) -> None:
        self._client = client
        self._shard = shard
        self._model = pages.model
        self._page_format = pages.format
        self._blocks: list[torch.Tensor] = []  # of a layer: (blocks, bytes)
        self._pages: list[torch.Tensor] = []
        self._pool: MappedPool | None = None
        self._linked_to = 0
        self._link: SessionLink | None = None
        self._under_way: list[tuple[list[int], Callable[[], bool]]] = []
        self._failed: set[int] = set()
        self._bad_blocks: set[int] = set()

    def register(self, kv_caches: dict[str, torch.Tensor], block_tokens: int) -> None:
        """vLLM's memory, a tensor for each layer. Raises ValueError, which says how
        pandod is to be started, where its pages have another layout."""
        self._blocks = [_blocks_of(name, kv) for name, kv in kv_caches.items()]
        layer_bytes = {blocks.shape[1] for blocks in self._blocks}
        if len(layer_bytes) != 1:
            raise ValueError(f"layers have blocks of {sorted(layer_bytes)} bytes")
        first = next(iter(kv_caches.values()))
        self._page_format = self._page_format or format_of(first)
        self._attach(block_tokens)

    def _attach(self, block_tokens: int) -> None:
        layers, layer_bytes = len(self._blocks), self._blocks[0].shape[1]
        layout = KvLayout.opaque(
            capacity_pages=self._client.pool.capacity_pages,
            layers=layers,
            page_bytes=layers * layer_bytes,
            page_tokens=block_tokens,
            order=self._client.pool.layout.order,
            page_format=self._page_format,
        )
        try:
            self._pool = self._client.attach_pool(
                expected_layout=layout, model=self._model
            )
        except LayoutMismatchError as error:
            raise ValueError(
                f"this engine does not fit the pool of pandod: {error.message}; start "
                f"pandod with --layers {layers} --page-bytes {layers * layer_bytes} "
                f"--page-tokens {block_tokens} --page-format '{self._page_format}'"
            ) from error
        views = self._pool.torch()
        self._pages = [
            views.opaque_pages(layer, self._shard) for layer in range(layers)
        ]
        require_same_device(self._pages[0].device, self._blocks[0].device)
        self._block_tokens = block_tokens

    def load(self, plan: CopyPlan) -> None:
        for lost in plan.lost_loads:
            self._bad_blocks.update(lost.block_ids)
        if not plan.loads:
            return
        try:
            if self._is_ready(plan):
                for copy in plan.loads.values():
                    self._copy(self._pages, copy.page_ids, self._blocks, copy.block_ids)
            else:
                self._refuse(plan.loads)
        except RuntimeError:
            _log.exception("a load failed")
            self._refuse(plan.loads)
        self._under_way.append((list(plan.loads), self._is_done()))

    def save(self, plan: CopyPlan) -> None:
        if not plan.saves:
            return
        try:
            if self._is_ready(plan):
                for copy in plan.saves.values():
                    self._copy(self._blocks, copy.block_ids, self._pages, copy.page_ids)
            else:
                self._failed |= plan.saves.keys()
        except RuntimeError:
            _log.exception("a save failed")
            self._failed |= plan.saves.keys()
        # Also of a save that failed a part may be under way.
        self._under_way.append((list(plan.saves), self._is_done()))

    def report(self) -> CopyReport | None:
        """What has come to its end since the last report."""
        done: list[int] = []
        while self._under_way and self._under_way[0][1]():
            done += self._under_way.pop(0)[0]
        if not done and not self._failed:
            return None
        report = CopyReport(dict.fromkeys(done, 1), self._failed)
        self._failed = set()
        return report

    def take_bad_blocks(self) -> set[int]:
        bad, self._bad_blocks = self._bad_blocks, set()
        return bad

    def _refuse(self, loads: dict[int, Copy]) -> None:
        """vLLM computes these anew; what they were to be computed from is not
        published."""
        self._failed |= loads.keys()
        for copy in loads.values():
            self._bad_blocks.update(copy.block_ids)

    def _is_ready(self, plan: CopyPlan) -> bool:
        """Whether the mapped pool is the one that the plan's pages are in. pandod may
        have begun anew, with other memory."""
        try:
            assert self._pool is not None
            if self._pool.epoch != plan.epoch:
                if self._client.epoch != plan.epoch:
                    return False
                self._pages = []
                self._attach(self._block_tokens)
            if self._linked_to != plan.session_id:
                self._link_to(plan.session_id)
        except (PandoError, ValueError) as error:
            _log.warning("pandod: %s; going on without it", error)
            return False
        return True

    def _link_to(self, session_id: int) -> None:
        link = self._client.link_session(session_id)
        if self._link is not None:
            # No copy into the pages of the lost session is under way any more.
            if self._blocks[0].is_cuda:
                torch.cuda.synchronize(self._blocks[0].device)
            self._link.close()
        self._link, self._linked_to = link, session_id

    def _copy(
        self,
        from_layers: list[torch.Tensor],
        from_ids: list[int],
        to_layers: list[torch.Tensor],
        to_ids: list[int],
    ) -> None:
        device = from_layers[0].device
        source = torch.tensor(from_ids, dtype=torch.int64, device=device)
        target = torch.tensor(to_ids, dtype=torch.int64, device=device)
        for from_layer, to_layer in zip(from_layers, to_layers, strict=True):
            to_layer.index_copy_(0, target, from_layer.index_select(0, source))

    def _is_done(self) -> Callable[[], bool]:
        device = self._blocks[0].device
        if device.type == "cpu":
            return lambda: True
        event = torch.cuda.current_stream(device).record_event()
        return event.query  # type: ignore[no-any-return]


def _blocks_of(name: str, kv: torch.Tensor) -> torch.Tensor:
    """The memory of a layer as (blocks, bytes), the very same."""
    blocks = kv.shape[0]
    if blocks > 1 and not kv[0].is_contiguous():
        kv = _without_gaps(name, kv)
    return kv.view(blocks, -1).view(torch.uint8)


def _without_gaps(name: str, kv: torch.Tensor) -> torch.Tensor:
    """A block whose dimensions lie in another order in memory, in that order."""
    order = sorted(range(1, kv.dim()), key=lambda d: kv.stride(d), reverse=True)
    kv = kv.permute(0, *order)
    if not kv[0].is_contiguous():
        raise ValueError(
            f"the blocks of layer '{name}' are not contiguous: shape "
            f"{tuple(kv.shape)}, "
            f"strides {kv.stride()}"
        )
    return kv


def format_of(kv: torch.Tensor) -> str:
    """What the inside of a block looks like: engines that say the same may share.
    Raises ValueError where nothing that is seen says so."""
    import vllm

    if kv.dtype not in _PLAIN_TYPES:
        raise ValueError(
            f"KV of {kv.dtype} has scales of its own; say with pando_page_format which "
            "engines have the same"
        )
    release = ".".join(vllm.__version__.split(".")[:2])
    shape = "x".join(str(n) for n in kv.shape[1:])
    strides = "x".join(str(n) for n in kv.stride()[1:])
    dtype = str(kv.dtype).removeprefix("torch.")
    return f"vllm {release} {kv.device.type} {dtype} {shape} by {strides}"
