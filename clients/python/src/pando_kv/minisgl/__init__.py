"""mini-SGLang over Pando, without a copy: its KV tensors are the mapped pool, its free
pages are those that the session has reserved, and its prefix cache is Pando's index.

mini-SGLang has no plug-ins. A server is started by `python3 -m pando_kv.minisgl.serve`,
which takes mini-SGLang's own arguments; where a program makes an `LLM`, it calls
`use_pando()` before. PANDO_ADDRESS says where pandod is, else it is at the default
socket. Importing this loads nothing of mini-SGLang.
"""

from __future__ import annotations


def use_pando() -> None:
    """Puts Pando in the place of mini-SGLang's KV pool and cache, for each Scheduler
    and LLM that this process makes from now on."""
    from pando_kv.minisgl.seams import replace_pool_and_cache

    replace_pool_and_cache()
