"""The refusal of models whose blocks vLLM fills with zeros when it reuses them.

vLLM's first model runner calls connectors at the beginning of a step, before it fills
the blocks, and a store of the old content is waited for there. vLLM's second model
runner calls connectors after it has queued the filling, so the store may read zeros.
"""

from __future__ import annotations

from typing import Any


def refuse_zeroed_blocks(vllm_config: Any, kv_cache_config: Any) -> None:
    """Raises ValueError if vLLM would use its second model runner for such a model."""
    # vLLM also copies states into reused blocks, but only for models whose blocks it
    # fills with zeros as well.
    if kv_cache_config.needs_kv_cache_zeroing and vllm_config.use_v2_model_runner:
        raise ValueError(
            "PandoOffloadingSpec does not support a model with states, or with KV of "
            "several precisions, under vLLM's second model runner, which fills its "
            "blocks with zeros before they are stored; VLLM_USE_V2_MODEL_RUNNER=0 "
            "chooses the first"
        )
