"""Pando as the store outside SGLang's device: blocks in the memory of the machine,
which engines on any of its GPUs share.

Chosen by SGLang's flags for an external cache linker, with the address of pandod in
PANDO_ADDRESS; docs/engines-sglang.md says the rest.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

LINKER = "PandoLinker"


def __getattr__(name: str) -> Any:
    """SGLang loads the linker by it."""
    if name == LINKER:
        require_seam(LINKER)
        from pando_kv.sglang.linker.linker import PandoLinker

        return PandoLinker
    raise AttributeError(name)
