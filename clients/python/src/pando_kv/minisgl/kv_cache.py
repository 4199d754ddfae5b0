"""mini-SGLang's KV tensors as views of the mapped pool."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

import torch
from minisgl.core import get_global_ctx
from minisgl.distributed import get_tp_info
from minisgl.engine.graph import GraphRunner
from minisgl.kvcache.base import BaseKVCachePool

from pando_kv import Client, KvLayout, MappedPool
from pando_kv._model_digest import model_digest
from pando_kv._open_pool import at_start
from pando_kv._plain_dtypes import PLAIN_DTYPES
from pando_kv._presence import SCHEDULER_PATIENCE
from pando_kv._same_device import require_same_device
from pando_kv.errors import LayoutMismatchError
from pando_kv.torch_views import TorchViews

# Seconds that a call at the start may take; a step waits SCHEDULER_PATIENCE at most.
_TIMEOUT = 30.0


@functools.cache
def session() -> Client:
    """Returns the client that holds this process's session. The first call opens it,
    and raises UnavailableError if pandod does not answer within _TIMEOUT seconds."""
    return Client(
        name=f"mini-sglang {os.getpid()}",
        timeout=_TIMEOUT,
        away_after=SCHEDULER_PATIENCE,
        token=os.environ.get("PANDO_TOKEN") or None,
    )


class PandoKVCache(BaseKVCachePool):  # type: ignore[misc]
    """mini-SGLang's KV cache, whose keys and values are views of the mapped pool. Slot
    s of mini-SGLang is slot s of the pool, and nothing is allocated. mini-SGLang's
    engine owns it, and its thread alone calls it."""

    def __init__(
        self, views: TorchViews, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._views = views
        self._dtype = dtype
        self._device = device

    def k_cache(self, index: int) -> torch.Tensor:
        """Returns the keys of a layer: (pages, page tokens, KV heads, head size)."""
        return self._views.keys(index)

    def v_cache(self, index: int) -> torch.Tensor:
        """Returns the values of a layer, in the shape of `k_cache`."""
        return self._views.values(index)

    def store_kv(
        self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int
    ) -> None:
        from minisgl.kernel import store_cache

        store_cache(
            k_cache=self._views.key_slots(layer_id),
            v_cache=self._views.value_slots(layer_id),
            indices=out_loc,
            k=k,
            v=v,
        )

    @property
    def device(self) -> torch.device:
        return self._device

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    @property
    def num_layers(self) -> int:
        return self._views.layout.layers


def pages_of_pool(engine: Any, old_free_memory: int, config: Any) -> int:
    """Returns --num-pages if it was given, or else the number of the pool's pages
    without page 0. Replaces mini-SGLang's Engine._determine_num_pages, which computes
    the number from the free memory. Raises ValueError if the engine does not fit an
    open pool."""
    if config.num_page_override is not None:
        return int(config.num_page_override)
    pool = at_start(lambda: session().pool)
    if pool.is_open:
        with _attach(config.model_config, config.page_size, engine.dtype) as mapped:
            pool = mapped.description
    return pool.capacity_pages - 1


def make_kv_cache(
    model_config: Any,
    num_pages: int,
    page_size: int,
    dtype: torch.dtype,
    device: torch.device,
) -> PandoKVCache:
    """Returns the KV cache over the mapped pool. Replaces mini-SGLang's
    create_kvcache_pool. `num_pages` is --num-pages + 1: padding rows of a batch write
    to one more page, which is the pool's page 0. Raises ValueError if the engine does
    not fit the pool, or computes on another device than the pool's."""
    pool = _attach(model_config, page_size, dtype)
    capacity = pool.description.capacity_pages
    if num_pages != capacity:
        raise ValueError(
            f"the engine has {num_pages - 1} pages and the pool of pandod "
            f"{capacity - 1}: start the engine with --num-pages {capacity - 1}"
        )
    views = pool.torch()
    require_same_device(views.key_slots(0).device, torch.device(device))
    return PandoKVCache(views, dtype, device)


def _attach(model_config: Any, page_size: int, dtype: torch.dtype) -> MappedPool:
    """Maps the pool. An open pool first takes the layout of this engine. Raises
    ValueError if the engine does not fit the pool or is not supported."""
    if get_tp_info().size != 1:
        raise ValueError("mini-SGLang on Pando does not support --tp-size above 1")
    if str(dtype) not in PLAIN_DTYPES:
        raise ValueError(f"mini-SGLang on Pando does not support KV of {dtype}")
    model = os.environ.get("PANDO_MODEL")
    if not model:
        raise ValueError("PANDO_MODEL must be the model as --model of pandod has it")
    return at_start(lambda: _attach_once(model_config, page_size, dtype, model))


def _attach_once(
    model_config: Any, page_size: int, dtype: torch.dtype, model: str
) -> MappedPool:
    client = session()
    layout = KvLayout.make(
        capacity_pages=client.pool.capacity_pages,
        layers=model_config.num_layers,
        heads=model_config.num_kv_heads,
        head_size=model_config.head_dim,
        dtype=PLAIN_DTYPES[str(dtype)],
        page_tokens=page_size,
    )
    try:
        return client.attach_pool(
            expected_layout=layout,
            model=model,
            # The fields are all that mini-SGLang reads of the model's configuration.
            model_digest=model_digest(dataclasses.asdict(model_config), dtype=dtype),
        )
    except LayoutMismatchError as error:
        page_tokens = client.pool.layout.page_tokens
        raise ValueError(
            f"this engine does not fit the pool of pandod: {error.message}. For the "
            f"pool that there is, the engine needs --page-size {page_tokens}"
        ) from error


class PandoGraphRunner(GraphRunner):  # type: ignore[misc]
    """mini-SGLang's graph runner, with padding rows of a batch that write to page 0.
    mini-SGLang's own would write to the last page, which a session may have; pandod
    gives page 0 to no session. mini-SGLang's engine owns it."""

    def __init__(self, *, dummy_req: Any, **others: Any) -> None:
        get_global_ctx().page_table[dummy_req.table_idx].fill_(0)
        super().__init__(dummy_req=dummy_req, **others)
