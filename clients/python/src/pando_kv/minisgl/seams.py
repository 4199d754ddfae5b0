"""The replacement of parts of mini-SGLang, and the check that those were tested."""

from __future__ import annotations

import hashlib
import importlib
import inspect

from pando_kv._seams import SEAMS, require_seam

_SEAM = "pando_kv.minisgl"

# The modules whose parts the adapter replaces or needs. mini-SGLang has no releases, so
# a digest of these sources serves as its version.
_MODULES = (
    "minisgl.engine.engine",
    "minisgl.engine.graph",
    "minisgl.kvcache.base",
    "minisgl.scheduler.cache",
    "minisgl.scheduler.prefill",
    "minisgl.scheduler.scheduler",
)
_TESTED_DIGEST = "af7e78bc46d0"


def replace_pool_and_cache() -> None:
    """Replaces mini-SGLang's KV pool, graph runner and cache manager by Pando's. Raises
    RuntimeError if this mini-SGLang is not the one that was tested."""
    digest = source_digest()
    (commit,) = SEAMS[_SEAM].versions
    version = commit if digest == _TESTED_DIGEST else f"of other sources, {digest}"
    require_seam(_SEAM, version)

    from minisgl.engine import engine
    from minisgl.scheduler import scheduler

    from pando_kv.minisgl.cache_manager import PandoCacheManager
    from pando_kv.minisgl.kv_cache import (
        PandoGraphRunner,
        make_kv_cache,
        pages_of_pool,
    )

    engine.Engine._determine_num_pages = pages_of_pool
    engine.create_kvcache_pool = make_kv_cache
    engine.GraphRunner = PandoGraphRunner
    scheduler.CacheManager = PandoCacheManager


def source_digest() -> str:
    """Returns a digest of the sources of the modules in _MODULES."""
    digest = hashlib.sha256()
    for name in _MODULES:
        digest.update(inspect.getsource(importlib.import_module(name)).encode())
    return digest.hexdigest()[:12]
