"""Pando as the store outside SGLang's device: blocks in the memory of the machine,
which engines on any of its GPUs share.

Chosen by SGLang's flags for an external cache linker, with the address of pandod in
PANDO_ADDRESS; docs/engines-sglang.md says the rest.
"""

from pando_kv.sglang.linker.linker import PandoLinker

__all__ = ["PandoLinker"]
