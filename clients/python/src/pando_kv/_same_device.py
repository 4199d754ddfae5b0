"""A check that an engine and the pool are in the same memory."""

from __future__ import annotations

from typing import Any


def require_same_device(of_pool: Any, of_engine: Any) -> None:
    """Raises ValueError, with both devices, if the engine computes on another device
    than the pool's. Both are torch devices; the engine's may have no index."""
    index = of_pool.index if of_engine.index is None else of_engine.index
    if (of_engine.type, index) != (of_pool.type, of_pool.index):
        raise ValueError(
            f"the pool of pandod is in the memory of {of_pool}, and the engine "
            f"computes on {of_engine}; both must be the same"
        )
