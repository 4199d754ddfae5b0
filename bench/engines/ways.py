"""The ways in which two engines of a kind serve: over Pando, or by themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.engine_process import EngineProcess, closing_all
from engines.models import LAYERS, LAYOUT
from engines.sglang import start as sglang
from engines.vllm import start as vllm
from engines.vllm.pool import BLOCK_BYTES, BLOCK_TOKENS, POOL
from pandod_process import Pandod

# The tokens of KV that each engine holds without Pando.
TOKENS = 16_384


@dataclass(frozen=True)
class Way:
    name: str
    kind: str
    has_pando: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)

    @contextlib.contextmanager
    def engines(self, model: Path, folder: Path) -> Iterator[list[EngineProcess]]:
        """Two that are ready."""
        start = {"sglang": sglang, "vllm": vllm}[self.kind].start_engine
        server = _serve(self.kind, folder) if self.has_pando else None
        try:
            pair = [
                start(name, model, server, folder, **self.arguments) for name in "ab"
            ]
            with closing_all(pair):
                for engine in pair:
                    engine.ready()
                yield pair
        finally:
            if server is not None:
                server.close()


def _serve(kind: str, folder: Path) -> Pandod:
    """With as much room as two engines have together."""
    if kind == "sglang":
        pages = 2 * TOKENS // sglang.PAGE_TOKENS
        server = Pandod(folder, pool_pages=pages, model="tiny", **LAYOUT)
    else:
        server = Pandod(folder, pool_pages=2 * TOKENS // BLOCK_TOKENS, **POOL)
    server.start()
    return server


def _vllm_memory(tokens: int, **arguments: Any) -> dict[str, Any]:
    blocks = tokens // BLOCK_TOKENS
    return arguments | {
        "enable_prefix_caching": True,
        "num_gpu_blocks_override": blocks,
        "kv_cache_memory_bytes": blocks * LAYERS * BLOCK_BYTES,
    }


_POOL_TOKENS = 2 * TOKENS - sglang.PAGE_TOKENS

WAYS = {
    "sglang": (
        Way("Pando", "sglang", True, {"max_total_tokens": _POOL_TOKENS}),
        Way("own caches", "sglang", False, {"max_total_tokens": TOKENS}),
    ),
    "vllm": (
        Way("copies", "vllm", True, _vllm_memory(TOKENS)),
        Way(
            "zero copy",
            "vllm",
            True,
            _vllm_memory(2 * TOKENS, connector={"pando_zero_copy": True}),
        ),
        Way("own caches", "vllm", False, _vllm_memory(TOKENS)),
    ),
}
