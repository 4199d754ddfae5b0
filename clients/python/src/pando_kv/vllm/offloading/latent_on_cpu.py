"""The refusal of latent attention (MLA) on CPUs without AMX.

vLLM turns its own prefix cache off there, because its reference backend is not made to
continue after a cached prefix. It would nevertheless continue after a prefix that a
connector loads, and generate other tokens than an engine without a connector.
"""

from __future__ import annotations

from typing import Any

from vllm.platforms import current_platform


def refuse_latent_on_cpu(vllm_config: Any) -> None:
    """Raises ValueError where vLLM has turned its prefix cache off for this reason."""
    if (
        current_platform.is_cpu()
        and vllm_config.model_config.use_mla
        and not vllm_config.cache_config.enable_prefix_caching
    ):
        raise ValueError(
            "PandoOffloadingSpec does not support latent attention (MLA) on a CPU on "
            "which vLLM caches no prefix of it, as on one without AMX"
        )
