"""mini-SGLang over Pando, without copies. mini-SGLang's KV tensors are the mapped pool,
its free pages are pages that the session has reserved, and its prefix cache is the
index of pandod.

mini-SGLang has no plug-ins. `python3 -m pando_kv.minisgl.serve` starts a server and
takes mini-SGLang's own arguments; a program that makes an `LLM` calls `use_pando()`
first. PANDO_ADDRESS is the address of pandod; without it the default socket is used.
Importing this package loads nothing of mini-SGLang.
"""

from __future__ import annotations


def use_pando() -> None:
    """Replaces mini-SGLang's KV pool and prefix cache by Pando, for each Scheduler and
    LLM that this process makes from now on. Raises RuntimeError if this mini-SGLang is
    not the one that was tested."""
    from pando_kv.minisgl.seams import replace_pool_and_cache

    replace_pool_and_cache()
