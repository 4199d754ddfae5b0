"""mini-SGLang's KV tensors over Pando's memory."""

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

# For the start; a step waits no longer than SCHEDULER_PATIENCE.
_TIMEOUT = 30.0


@functools.cache
def session() -> Client:
    """The session of this process; opened by the first call."""
    return Client(
        name=f"mini-sglang {os.getpid()}",
        timeout=_TIMEOUT,
        away_after=SCHEDULER_PATIENCE,
        token=os.environ.get("PANDO_TOKEN") or None,
    )


class PandoKVCache(BaseKVCachePool):  # type: ignore[misc]
    """Its keys and values of a layer are views of the mapped pool: slot s of
    mini-SGLang is slot s of Pando, and nothing is allocated."""

    def __init__(
        self, views: TorchViews, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._views = views
        self._dtype = dtype
        self._device = device

    def k_cache(self, index: int) -> torch.Tensor:
        """K of a layer: (pages, tokens of a page, KV heads, head size)."""
        return self._views.keys(index)

    def v_cache(self, index: int) -> torch.Tensor:
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
    """In the place of mini-SGLang's Engine._determine_num_pages, which goes by the
    memory that is free: --num-pages, else those of the pool but for its page 0."""
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
    """In the place of mini-SGLang's create_kvcache_pool. `num_pages` has one more than
    --num-pages, for rows of a batch that are padding: Pando's page 0."""
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
    """Maps the pool, which takes the layout of this engine if it is open. Raises
    ValueError where the engine does not fit."""
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
            # All that mini-SGLang takes from the model's configuration.
            model_digest=model_digest(dataclasses.asdict(model_config), dtype=dtype),
        )
    except LayoutMismatchError as error:
        page_tokens = client.pool.layout.page_tokens
        raise ValueError(
            f"this engine does not fit the pool of pandod: {error.message}. For the "
            f"pool that there is, the engine needs --page-size {page_tokens}"
        ) from error


class PandoGraphRunner(GraphRunner):  # type: ignore[misc]
    """Padding rows of a batch write to page 0, which no session is ever given, instead
    of to a last page of mini-SGLang's own."""

    def __init__(self, *, dummy_req: Any, **others: Any) -> None:
        get_global_ctx().page_table[dummy_req.table_idx].fill_(0)
        super().__init__(dummy_req=dummy_req, **others)
