"""vLLM's OffloadingConnector over the blocks of Pando: one memory of the machine under
engines that compute elsewhere.

Chosen by `--kv-transfer-config`, of which docs/engines-vllm.md has an example.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

SPEC = "PandoOffloadingSpec"


def __getattr__(name: str) -> Any:
    """vLLM loads the spec by it."""
    if name == SPEC:
        require_seam(SPEC)
        from pando_kv.vllm.offloading.spec import PandoOffloadingSpec

        return PandoOffloadingSpec
    raise AttributeError(name)
