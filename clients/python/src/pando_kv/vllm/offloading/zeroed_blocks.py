"""Blocks that vLLM fills with zeros, or copies into, when it gives them out anew.

Its first model runner tells connectors of a step before it does so, and a store of what
was in such a block is waited for then. Its second one tells them after it has queued
that: what is stored of the block may be zeros.
"""

from __future__ import annotations

from typing import Any


def refuse_zeroed_blocks(vllm_config: Any, kv_cache_config: Any) -> None:
    """Raises ValueError where the second model runner would do so."""
    # States that are copied are of models whose blocks are filled with zeros, too.
    if kv_cache_config.needs_kv_cache_zeroing and vllm_config.use_v2_model_runner:
        raise ValueError(
            "PandoOffloadingSpec does not support a model with states, or with KV of "
            "several precisions, under vLLM's second model runner, which fills its "
            "blocks with zeros before they are stored; VLLM_USE_V2_MODEL_RUNNER=0 "
            "chooses the first"
        )
