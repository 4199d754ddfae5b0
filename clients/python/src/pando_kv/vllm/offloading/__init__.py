"""vLLM's OffloadingConnector over Pando's blocks.

The engines of a machine compute in memory of their own and share one block memory in
host memory. An operator chooses it with `--kv-transfer-config`; docs/engines-vllm.md
has an example.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

SPEC = "PandoOffloadingSpec"


def __getattr__(name: str) -> Any:
    """Imports the spec when vLLM asks for it. Raises RuntimeError if this vLLM is not
    one that was tested."""
    if name == SPEC:
        require_seam(SPEC)
        from pando_kv.vllm.offloading.spec import PandoOffloadingSpec

        return PandoOffloadingSpec
    raise AttributeError(name)
