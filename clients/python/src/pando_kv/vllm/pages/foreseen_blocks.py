"""The shape and strides of vLLM's blocks, before vLLM makes their memory."""

from __future__ import annotations

from typing import Any

import torch


def foreseen_blocks(kv_cache_config: Any, vllm_config: Any) -> torch.Tensor:
    """Returns the blocks of the first layer, as a tensor on the meta device.

    vLLM decides only later whether an attention backend splits the blocks. An engine
    that splits them is refused once its real blocks are there.
    """
    from vllm.v1.kv_cache_interface import create_kv_cache_views

    (tensor,) = kv_cache_config.kv_cache_tensors
    (group,) = kv_cache_config.kv_cache_groups
    spec = group.kv_cache_spec
    by_layer = getattr(spec, "kv_cache_specs", {})
    views: list[torch.Tensor] = create_kv_cache_views(
        torch.empty(tensor.size, dtype=torch.int8, device="meta"),
        by_layer.get(tensor.layers[0], spec),
        kv_cache_config.num_blocks,
        vllm_config.cache_config.get_resolved_kv_cache_layout(),
        tensor,
    )
    return views[0]
