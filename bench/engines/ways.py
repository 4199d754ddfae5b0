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
from pandod_process import OPEN, Pandod

# The number of tokens of KV that each engine holds without Pando.
TOKENS = 16_384
BLOCKS = {
    "spec_name": "PandoOffloadingSpec",
    "spec_module_path": "pando_kv.vllm.offloading",
}
# The sizes for engines that use a second memory beside their own: SMALL_TOKENS fit into
# the engine's own memory, BESIDE_TOKENS are its share of the second memory.
SMALL_TOKENS = 5_120
BESIDE_TOKENS = 12_288


@dataclass(frozen=True)
class Way:
    name: str
    kind: str
    has_pando: bool = False
    has_blocks: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)

    @contextlib.contextmanager
    def engines(self, model: Path, folder: Path) -> Iterator[list[EngineProcess]]:
        """Yields two engines that are ready, and ends them afterwards."""
        start = {"sglang": sglang, "vllm": vllm}[self.kind].start_engine
        server = None
        if self.has_pando:
            serve = _serve_blocks if self.has_blocks else _serve
            server = serve(self.kind, folder)
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
    """Starts a pandod whose pool is as large as the caches of two engines together."""
    if kind == "sglang":
        pages = 2 * TOKENS // sglang.PAGE_TOKENS
        server = Pandod(folder, pool_pages=pages, model="tiny", **LAYOUT)
    else:
        server = Pandod(folder, pool_pages=2 * TOKENS // BLOCK_TOKENS, **POOL)
    server.start()
    return server


def _serve_blocks(_kind: str, folder: Path) -> Pandod:
    """Starts a pandod whose block memory is as large as two engines' shares of it."""
    server = Pandod(folder, memory=2 * _BESIDE_BYTES, block_extent="1MiB", **OPEN)
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
_BESIDE_BYTES = BESIDE_TOKENS // BLOCK_TOKENS * LAYERS * BLOCK_BYTES
_OWN_OFFLOADING = {
    "kv_connector": "OffloadingConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {
        "spec_name": "OwnOnCpu",
        "spec_module_path": "engines.vllm.offloading.own_on_cpu",
        "cpu_bytes_to_use": _BESIDE_BYTES,
    },
}

WAYS = {
    "sglang": (
        Way(
            "Pando",
            "sglang",
            has_pando=True,
            arguments={"max_total_tokens": _POOL_TOKENS},
        ),
        Way("own caches", "sglang", arguments={"max_total_tokens": TOKENS}),
    ),
    "vllm": (
        Way("Pando", "vllm", has_pando=True, arguments=_vllm_memory(2 * TOKENS)),
        Way("own caches", "vllm", arguments=_vllm_memory(TOKENS)),
    ),
    # KV that has left the engines lies in one memory for both engines, or in one memory
    # of half the size for each engine.
    "blocks": (
        Way(
            "blocks",
            "vllm",
            has_pando=True,
            has_blocks=True,
            arguments=_vllm_memory(SMALL_TOKENS, connector=BLOCKS),
        ),
        Way(
            "own offload",
            "vllm",
            arguments=_vllm_memory(SMALL_TOKENS, kv_transfer_config=_OWN_OFFLOADING),
        ),
    ),
}
