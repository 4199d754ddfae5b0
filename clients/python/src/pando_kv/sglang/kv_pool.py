"""SGLang's KV tensors, which are views of Pando's pool."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
from sglang.srt.runtime_context import get_parallel, get_server_args, get_serving

from pando_kv import KvLayout
from pando_kv._model_digest import model_digest
from pando_kv._open_pool import at_start
from pando_kv._plain_dtypes import PLAIN_DTYPES
from pando_kv._same_device import require_same_device
from pando_kv.errors import LayoutMismatchError
from pando_kv.layout import PoolDescription
from pando_kv.sglang.attachment import Attachment, attach, session
from pando_kv.sglang.pool_size import tokens_of


def model_digest_of(server_args: Any) -> str:
    """Returns the digest of the model with the settings that SGLang computes with."""
    model = ModelConfig.from_server_args(server_args)
    # A longrope embedding depends on the longest context that the engine admits.
    is_by_length = "longrope" in str(model.hf_config.to_dict())
    return model_digest(
        model.hf_config.to_dict(),
        revision=model.revision,
        dtype=model.dtype,
        quantization=model.quantization,
        context=model.context_len if is_by_length else None,
    )


def say_layout(configurator: Any) -> PoolDescription:
    """Returns the description of the pool. An open pool takes this engine's layout
    first. `configurator` is SGLang's KVCacheConfigurator before it makes a KV pool.
    Raises ValueError if the engine does not fit the pool."""
    model, parallel = configurator.model_config, get_parallel()
    _refuse_pages(
        configurator.kv_cache_dtype,
        configurator.pool_page_size,
        (model.head_dim, model.v_head_dim),
    )
    attachment = _attach(
        layers=configurator.layer_info.num_effective_layers,
        heads=model.get_num_kv_heads(parallel.attn_tp_size, parallel.attn_dcp_size),
        head_size=model.head_dim,
        dtype=configurator.kv_cache_dtype,
        page_tokens=configurator.pool_page_size,
    )
    with attachment.pool as pool:
        return pool.description


def _attach(*, dtype: torch.dtype, **shape: int) -> Attachment:
    """Maps the shard of this rank. Raises ValueError if the engine does not fit."""
    return at_start(lambda: _attach_once(dtype, shape))


def _attach_once(dtype: torch.dtype, shape: dict[str, int]) -> Attachment:
    pool = session().pool
    shards, ranks = len(pool.shards), get_parallel().tp_size
    if shards != ranks:
        raise ValueError(
            f"pandod has --pool-shards {shards}, the engine --tp-size {ranks}; "
            "each rank needs a shard of its own"
        )
    layout = KvLayout.make(
        capacity_pages=pool.capacity_pages,
        layers=shape["layers"],
        heads=shape["heads"],
        head_size=shape["head_size"],
        dtype=PLAIN_DTYPES[str(dtype)],
        page_tokens=shape["page_tokens"],
    )
    try:
        return attach(
            layout,
            get_serving().served_model_name,
            model_digest_of(get_server_args()),
            get_parallel().tp_rank,
        )
    except LayoutMismatchError as error:
        raise ValueError(
            f"this engine does not fit the pool of pandod: {error.message}. For the "
            f"pool that there is, the engine needs {_flags_for(session().pool)}"
        ) from error


def _refuse_pages(
    dtype: torch.dtype, page_size: int, head_sizes: tuple[int, int]
) -> None:
    """Raises ValueError if the pool cannot have pages of this kind. `head_sizes` are
    the head size of the keys and the head size of the values."""
    _refuse(
        (str(dtype) not in PLAIN_DTYPES, f"--kv-cache-dtype {dtype}"),
        (head_sizes[0] != head_sizes[1], "values of another size than keys"),
        (page_size == 1, "--page-size 1"),
    )


def _refuse(*checks: tuple[bool, str]) -> None:
    for is_so, what in checks:
        if is_so:
            raise ValueError(f"--radix-cache-backend pando does not support {what}")


def _flags_for(pool: PoolDescription) -> str:
    """Returns the flags that an engine on the pool needs."""
    size = pool.layout.page_tokens
    return f"--page-size {size} --max-total-tokens {tokens_of(pool)}"


class PandoKVPool(MHATokenToKVPool):  # type: ignore[misc]
    """SGLang's KV pool, whose keys and values are views of the mapped pool: slot s of
    SGLang is slot s of Pando, and nothing is allocated. SGLang makes and owns one on
    each rank."""

    attachment: Attachment

    def _create_buffers(self) -> None:
        self._refuse_what_is_not_supported()
        self.attachment = self._attach()
        rank = get_parallel().tp_rank
        views = self.attachment.pool.torch()
        # The method of the base class, which this one replaces, sets these, too.
        self.k_scale_buffer = self.v_scale_buffer = None
        self.native_k_scale_buffer = self.native_v_scale_buffer = None
        self.dq_k_buffer = self.dq_v_buffer = None
        self.k_buffer = [views.key_slots(i, rank) for i in range(self.layer_num)]
        self.v_buffer = [views.value_slots(i, rank) for i in range(self.layer_num)]
        self._kv_buffer_descs = self._build_kv_buffer_descs()
        self._init_data_ptrs_and_strides()

    def _refuse_what_is_not_supported(self) -> None:
        _refuse(
            (self.is_quantized_kv_cache, "a quantized KV cache"),
            (self.store_dtype != self.dtype, f"--kv-cache-dtype {self.dtype}"),
            (self.kv_cache_layout != "nhd", f"KV layout '{self.kv_cache_layout}'"),
            (self.post_capture_active, "KV memory that is backed after graph capture"),
        )
        head_sizes = self.head_dim, self.v_head_dim
        _refuse_pages(self.dtype, self.page_size, head_sizes)

    def _attach(self) -> Attachment:
        attachment = _attach(
            layers=self.layer_num,
            heads=self.head_num,
            head_size=self.head_dim,
            dtype=self.dtype,
            page_tokens=self.page_size,
        )
        pool = attachment.pool.description
        tokens = tokens_of(pool)
        if self.size != tokens:
            raise ValueError(
                f"the engine has room for {self.size} tokens, the pool of pandod for "
                f"{tokens}: start the engine with {_flags_for(pool)}"
            )
        of_pool = attachment.pool.torch().key_slots(0, get_parallel().tp_rank).device
        require_same_device(of_pool, torch.device(self.device))
        return attachment
