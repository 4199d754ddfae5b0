"""SGLang's prefix cache over Pando, without a copy.

SGLang's KV tensors are views of the mapped pool, its free pages are pages that the
session has reserved, and its prefix cache is Pando's index.

`--radix-cache-backend pando` chooses this backend; docs/engines-sglang.md describes it.
SGLang finds this package by its entry points and calls `activate` and `register` in
each of its processes. Importing this package imports nothing of SGLang.
"""

from __future__ import annotations

import os
import sys

ADDRESS = "PANDO_ADDRESS"
"""Environment variable: the address of pandod. The default is pandod's socket."""
MODEL = "PANDO_MODEL"
"""Environment variable: the model's name in pandod's --model, if it differs from
SGLang's served model name."""
TOKEN = "PANDO_TOKEN"
"""Environment variable: the bearer token, if pandod requires one."""
WAIT_MS = "PANDO_WAIT_MS"
"""Environment variable: the milliseconds for which a request may stay in the queue
while a tier loads its prompt."""

BACKEND = "pando"
"""The value of --radix-cache-backend."""
_FLAG = "--radix-cache-backend"
SEAM = f"{_FLAG} {BACKEND}"


def activate() -> str | None:
    """Returns the name of the platform class that gives SGLang its KV pool and
    allocator. SGLang calls it through the entry point `sglang.srt.platforms`.

    Returns None, which leaves the choice to SGLang, if neither the address is set nor
    the command line names the backend, and on devices other than CPU and CUDA."""
    if not os.environ.get(ADDRESS) and not _is_chosen(sys.argv):
        return None
    if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
        return "pando_kv.sglang.platform:PandoCpuPlatform"
    import torch

    if torch.cuda.is_available() and torch.version.hip is None:
        return "pando_kv.sglang.platform:PandoCudaPlatform"
    return None


def _is_chosen(arguments: list[str]) -> bool:
    """Returns whether the command line chooses the backend. Processes that SGLang
    spawns have the same arguments as the first one."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(
        (flag, value) == (_FLAG, BACKEND) or flag == f"{_FLAG}={BACKEND}"
        for flag, value in pairs
    )


def register() -> None:
    """Registers the backend's name and the hooks. SGLang calls it through the entry
    point `sglang.srt.plugins`."""
    from pando_kv.sglang.hooks import register_hooks

    register_hooks()
