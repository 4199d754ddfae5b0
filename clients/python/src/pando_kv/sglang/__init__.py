"""SGLang over Pando, without a copy: its KV tensors are the mapped pool, its free pages
are those that the session has reserved, and its prefix cache is Pando's index.

Chosen by `--radix-cache-backend pando`; docs/engines-sglang.md says the rest. SGLang
finds this package by its entry points and calls the two functions below in each of its
processes. Importing it loads nothing of SGLang.
"""

from __future__ import annotations

import os
import sys

ADDRESS = "PANDO_ADDRESS"
"""Where pandod listens, if not at the default socket."""
MODEL = "PANDO_MODEL"
"""The model's name as pandod's --model has it, where it is not the served name."""
TOKEN = "PANDO_TOKEN"
"""The bearer token, where pandod wants one."""
WAIT_MS = "PANDO_WAIT_MS"
"""How long a request may stay in the queue while a tier loads its prompt."""

BACKEND = "pando"
"""The name after --radix-cache-backend."""
_FLAG = "--radix-cache-backend"
SEAM = f"{_FLAG} {BACKEND}"


def activate() -> str | None:
    """Entry point `sglang.srt.platforms`: the class that gives SGLang its KV pool and
    allocator. None, SGLang's own choice, where neither the address is set nor the
    command line names the backend."""
    if not os.environ.get(ADDRESS) and not _is_chosen(sys.argv):
        return None
    if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
        return "pando_kv.sglang.platform:PandoCpuPlatform"
    import torch

    if torch.cuda.is_available() and torch.version.hip is None:
        return "pando_kv.sglang.platform:PandoCudaPlatform"
    return None


def _is_chosen(arguments: list[str]) -> bool:
    """Processes that SGLang spawns have the arguments of the first one, too."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(
        (flag, value) == (_FLAG, BACKEND) or flag == f"{_FLAG}={BACKEND}"
        for flag, value in pairs
    )


def register() -> None:
    """Entry point `sglang.srt.plugins`: names the backend, and hooks in."""
    from pando_kv.sglang.hooks import register_hooks

    register_hooks()
