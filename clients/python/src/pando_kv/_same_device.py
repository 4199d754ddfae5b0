"""An engine and the pool must be in the same memory."""

from __future__ import annotations

from typing import Any


def require_same_device(of_pool: Any, of_engine: Any) -> None:
    """Both are torch devices; that of the engine may leave its index open. Raises
    ValueError, which names them, where the engine would compute on another one."""
    index = of_pool.index if of_engine.index is None else of_engine.index
    if (of_engine.type, index) != (of_pool.type, of_pool.index):
        raise ValueError(
            f"the pool of pandod is in the memory of {of_pool}, and the engine "
            f"computes on {of_engine}; both must be the same"
        )
