"""The copy mode in vLLM's workers: copies between vLLM's blocks and Pando's pages.

Copies are queued on the stream of the model's steps, or on one of their own; a copy is
reported once the device has done it. With a stream of their own, loads are
asynchronous: vLLM holds a request back until its load is reported.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from pando_kv import Client, KvLayout, LayoutMismatchError, MappedPool, SessionLink
from pando_kv._open_pool import at_start
from pando_kv._plain_dtypes import PLAIN_DTYPES
from pando_kv._same_device import require_same_device
from pando_kv.errors import PandoError
from pando_kv.vllm.copy_layers import CopyLayers
from pando_kv.vllm.copy_plan import Copy, CopyPlan, CopyReport
from pando_kv.vllm.copy_stream import CopyStream, Event, Over, stream_of

_log = logging.getLogger("pando_kv.vllm")


@dataclass(frozen=True)
class StatedPages:
    """What engines that share pages must state alike, beside sizes."""

    model: str
    digest: str
    """Of the model's configuration."""
    format: str
    """Names the inside of a page; empty: what is seen of vLLM's tensors."""


@dataclass(frozen=True)
class _UnderWay:
    numbers: list[int]
    event: Event
    receivers: set[str] = field(default_factory=set)
    """Requests that are held back for it."""


class CopyWorker:
    """Owned by a worker's connector; its thread alone calls it."""

    def __init__(
        self,
        client: Client,
        shard: int,
        pages: StatedPages,
        blocks: int,
        is_async: bool = False,
    ) -> None:
        """`blocks` is how many vLLM's scheduler hands out; `is_async`: copies have a
        stream of their own."""
        self._client = client
        self._shard = shard
        self._is_async = is_async
        self._stream: CopyStream | None = None
        self._stated = pages
        self._num_blocks = blocks
        self._page_format = pages.format
        self._blocks: list[torch.Tensor] = []  # of a layer: (blocks, bytes)
        self._layers: CopyLayers | None = None
        self._pool: MappedPool | None = None
        self._opening: threading.Thread | None = None
        self._linked_to = 0
        self._link: SessionLink | None = None
        self._under_way: list[_UnderWay] = []
        self._done: list[int] = []
        self._received: set[str] = set()
        self._failed: set[int] = set()
        self._bad_blocks: set[int] = set()

    def register(self, kv_caches: dict[str, torch.Tensor], block_tokens: int) -> None:
        """vLLM's memory, a tensor for each layer. Raises ValueError, which says how
        pandod is to be started, where its pages have another layout."""
        self._blocks = [
            _blocks_of(name, kv, self._num_blocks) for name, kv in kv_caches.items()
        ]
        layer_bytes = {blocks.shape[1] for blocks in self._blocks}
        if len(layer_bytes) != 1:
            raise ValueError(f"layers have blocks of {sorted(layer_bytes)} bytes")
        self._stream = stream_of(self._blocks[0].device, self._is_async)
        first = next(iter(kv_caches.values()))
        self._page_format = self._page_format or format_of(first)
        self._block_tokens = block_tokens
        at_start(self._attach)

    def _attach(self) -> None:
        layers = len(self._blocks)
        try:
            self._pool = self._map()
        except LayoutMismatchError as error:
            raise ValueError(
                f"this engine does not fit the pool of pandod: {error.message}"
            ) from error
        views = self._pool.torch()
        pages = [views.opaque_pages(layer, self._shard) for layer in range(layers)]
        require_same_device(pages[0].device, self._blocks[0].device)
        self._layers = CopyLayers(self._blocks, pages)

    def _map(self) -> MappedPool:
        """A pool that is open takes the layout of vLLM's blocks."""
        pool, layers = self._client.pool, len(self._blocks)
        layout = KvLayout.opaque(
            capacity_pages=pool.capacity_pages,
            layers=layers,
            page_bytes=layers * self._blocks[0].shape[1],
            page_tokens=self._block_tokens,
            order=pool.layout.order,
            page_format=self._page_format,
        )
        return self._client.attach_pool(
            expected_layout=layout,
            model=self._stated.model,
            model_digest=self._stated.digest,
            shards=[self._shard],
        )

    def begin(self, plan: CopyPlan) -> None:
        """Before anything of the step is queued: what it may write to is read first."""
        self._let_go()
        self._open_again()
        for each in self._under_way:
            if not plan.overwritten.isdisjoint(each.numbers):
                each.event.wait()
        if self._stream is not None:
            self._stream.begin_step()

    def _let_go(self) -> None:
        """pandod may have begun anew in the same memory, which it hands out once no
        worker of before maps it."""
        if self._pool is None:
            return
        if not all(each.event.query() for each in self._under_way):
            return
        with suppress(PandoError):
            if self._client.epoch == self._pool.epoch:
                return
            self._layers = self._pool = None
            if self._link is not None:
                self._link.close()
            self._link, self._linked_to = None, 0

    def _open_again(self) -> None:
        """pandod may have begun anew, with a pool that is open again. Steps do not wait
        until it is not."""
        if self._opening is not None and self._opening.is_alive():
            return
        with suppress(PandoError):
            if self._client.pool.is_open:
                self._opening = threading.Thread(target=self._say_layout, daemon=True)
                self._opening.start()

    def _say_layout(self) -> None:
        try:
            self._map().close()
        except (PandoError, RuntimeError) as error:
            _log.warning("pandod: %s; going on without it", error)

    def load(self, plan: CopyPlan) -> None:
        if plan.lost_loads:
            self._refuse(plan.lost_loads)
            self._begin(plan.lost_loads, Over())
        if not plan.loads:
            return
        event: Event = Over()
        if self._is_ready(plan):
            copies = self._copies(plan.loads, CopyLayers.load, self._refuse)
            event = self._stream_of_copies().load(copies)
        else:
            self._refuse(plan.loads)
        self._begin(plan.loads, event)

    def save(self, plan: CopyPlan) -> None:
        if not plan.saves:
            return
        event: Event = Over()
        if self._is_ready(plan):
            copies = self._copies(plan.saves, CopyLayers.save, self._failed.update)
            event = self._stream_of_copies().save(copies)
        else:
            self._failed.update(plan.saves)
        self._under_way.append(_UnderWay(list(plan.saves), event))

    def take_received(self) -> set[str]:
        """Requests whose loads have come to their end, well or not."""
        self._collect()
        received, self._received = self._received, set()
        return received

    def report(self) -> CopyReport | None:
        """What has come to its end since the last report."""
        self._collect()
        if not self._done and not self._failed:
            return None
        report = CopyReport(dict.fromkeys(self._done, 1), self._failed)
        self._done, self._failed = [], set()
        return report

    def take_bad_blocks(self) -> set[int]:
        bad, self._bad_blocks = self._bad_blocks, set()
        return bad

    def _begin(self, loads: dict[int, Copy], event: Event) -> None:
        requests = {load.request_id for load in loads.values()}
        held_back = requests if self._is_async else set()
        self._under_way.append(_UnderWay(list(loads), event, held_back))

    def _collect(self) -> None:
        while self._under_way and self._under_way[0].event.query():
            over = self._under_way.pop(0)
            self._done += over.numbers
            self._received |= over.receivers

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
            if self._pool is None or self._pool.epoch != plan.epoch:
                if self._client.epoch != plan.epoch:
                    return False
                self._finish()
                self._layers = None
                self._attach()
            if self._linked_to != plan.session_id:
                self._link_to(plan.session_id)
        except (PandoError, RuntimeError, ValueError) as error:
            _log.warning("pandod: %s; going on without it", error)
            return False
        return True

    def _link_to(self, session_id: int) -> None:
        link = self._client.link_session(session_id)
        if self._link is not None:
            # No copy into the pages of the lost session is under way any more.
            self._finish()
            self._link.close()
        self._link, self._linked_to = link, session_id

    def _finish(self) -> None:
        for each in self._under_way:
            each.event.synchronize()

    def _stream_of_copies(self) -> CopyStream:
        assert self._stream is not None
        return self._stream

    def _copies(
        self,
        copies: dict[int, Copy],
        copy: Callable[[CopyLayers, list[int], list[int]], None],
        fail: Callable[[dict[int, Copy]], object],
    ) -> Callable[[], None]:
        """All at once: what is launched does not depend on how many requests there are.
        A part of copies that fail may be under way, too: there is an end to wait for in
        any case."""
        page_ids = [page for each in copies.values() for page in each.page_ids]
        block_ids = [block for each in copies.values() for block in each.block_ids]
        assert self._layers is not None
        layers = self._layers

        def copy_all() -> None:
            try:
                copy(layers, page_ids, block_ids)
            except RuntimeError:
                _log.exception("copies failed")
                fail(copies)

        return copy_all


def _blocks_of(name: str, kv: torch.Tensor, blocks: int) -> torch.Tensor:
    """The memory of a layer as (blocks, bytes), the very same. Attention kernels whose
    blocks are smaller than the scheduler's see each of those as several, in a row."""
    if kv.shape[0] % blocks:
        raise ValueError(
            f"layer '{name}' has {kv.shape[0]} blocks; {blocks} or a multiple is needed"
        )
    if kv.shape[0] > 1 and not kv[0].is_contiguous():
        kv = _without_gaps(name, kv)
    kv = kv.view(kv.shape[0], -1).view(torch.uint8)
    return kv if kv.shape[0] == blocks else kv.view(blocks, -1)


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


def format_of(kv: torch.Tensor, device: str = "") -> str:
    """What the inside of a block looks like: engines that say the same may share.
    `device` is the type of the one that will have it, where `kv` is on none. Raises
    ValueError where nothing that is seen says so."""
    import vllm

    if str(kv.dtype) not in PLAIN_DTYPES:
        raise ValueError(
            f"KV of {kv.dtype} has scales of its own; say with pando_page_format which "
            "engines have the same"
        )
    release = ".".join(vllm.__version__.split(".")[:2])
    shape = "x".join(str(n) for n in kv.shape[1:])
    strides = "x".join(str(n) for n in kv.stride()[1:])
    dtype = str(kv.dtype).removeprefix("torch.")
    return f"vllm {release} {device or kv.device.type} {dtype} {shape} by {strides}"
