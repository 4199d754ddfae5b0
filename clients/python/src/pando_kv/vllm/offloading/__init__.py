"""vLLM's OffloadingConnector over the blocks of Pando: one memory of the machine under
engines that compute elsewhere.

Chosen by `--kv-transfer-config`, of which docs/engines-vllm.md has an example.
"""

from pando_kv.vllm.offloading.spec import PandoOffloadingSpec

__all__ = ["PandoOffloadingSpec"]
