"""What engines that share pages must state alike, beside sizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pando_kv._plain_dtypes import PLAIN_DTYPES


@dataclass(frozen=True)
class StatedPages:
    model: str
    digest: str
    """Of the model's configuration."""
    format: str
    """Names the inside of a page; empty: what is seen of vLLM's tensors."""


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
