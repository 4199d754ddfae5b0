"""Starts an engine of either kind, for the demo."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from engines.engine_process import EngineProcess
from engines.models import LAYOUT
from pandod_process import Pandod

# As many tokens as an SGLang of the tests has by itself.
PAGES = 512


def serve(kind: str, folder: Path) -> Pandod:
    """A pandod for the test model."""
    if kind == "sglang":
        server = Pandod(folder, pool_pages=PAGES, model="tiny", **LAYOUT)
    else:
        pool = import_module("engines.vllm.pool").POOL
        server = Pandod(folder, pool_pages=PAGES, **pool)
    server.start()
    return server


def start(
    kind: str, name: str, model: Path, server: Pandod | None, folder: Path
) -> EngineProcess:
    """With Pando, or with the engine's own prefix cache. Does not wait until it is
    ready."""
    module = import_module(f"engines.{kind}.start")
    has_own_cache = kind == "vllm" and server is None
    own = {"enable_prefix_caching": True} if has_own_cache else {}
    engine: EngineProcess = module.start_engine(name, model, server, folder, **own)
    return engine
