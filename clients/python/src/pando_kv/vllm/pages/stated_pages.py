"""The values, besides sizes, that must be equal for all engines that share pages."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pando_kv._plain_dtypes import PLAIN_DTYPES


@dataclass(frozen=True)
class StatedPages:
    """The values that an engine states about its pages. Immutable."""

    model: str
    """The name of the model."""
    digest: str
    """The digest of the model's configuration."""
    format: str
    """A name for the inside of a page. If it is empty, format_of() derives one from
    vLLM's tensors."""


def format_of(kv: torch.Tensor, device: str = "") -> str:
    """Returns a name for the inside of a block of `kv`: (blocks, ...). Engines with
    equal names may share pages. `device` is the type of the device that will hold the
    blocks, for a `kv` on the meta device. Raises ValueError for KV with scales, which
    the tensor does not show."""
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
