"""Pando as SGLang's store outside the device: blocks in the memory of the machine,
which engines on any of its GPUs share.

SGLang's flags for an external cache linker choose it, and PANDO_ADDRESS has the address
of pandod; docs/engines-sglang.md describes both.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

LINKER = "PandoLinker"


def __getattr__(name: str) -> Any:
    """Returns the linker class, which is imported when SGLang asks for it by name.
    Raises AttributeError for other names, and RuntimeError for an SGLang that was not
    tested."""
    if name == LINKER:
        require_seam(LINKER)
        from pando_kv.sglang.linker.linker import PandoLinker

        return PandoLinker
    raise AttributeError(name)
