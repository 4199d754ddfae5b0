"""Client of Pando, one KV cache under many LLM engines.

`Client` is synchronous; `pando_kv.aio.AsyncClient` is its asyncio twin.
"""

from pando_kv._session import Session
from pando_kv.client import Client, Lock
from pando_kv.errors import (
    DeadlineError,
    InvalidRequestError,
    LayoutMismatchError,
    LockMovedError,
    NotAllowedError,
    PageNotOwnedError,
    PandoError,
    PoolExhaustedError,
    SessionLostError,
    UnavailableError,
    UnknownLockError,
)
from pando_kv.layout import DType, KvLayout, LayoutOrder, PoolDescription, Shard
from pando_kv.pool import MappedPool
from pando_kv.results import (
    CacheCounters,
    Flush,
    Insert,
    Match,
    Namespace,
    PageStates,
    Stats,
)

__all__ = [
    "CacheCounters",
    "Client",
    "DType",
    "DeadlineError",
    "Flush",
    "Insert",
    "InvalidRequestError",
    "KvLayout",
    "LayoutMismatchError",
    "LayoutOrder",
    "Lock",
    "LockMovedError",
    "MappedPool",
    "Match",
    "Namespace",
    "NotAllowedError",
    "PageNotOwnedError",
    "PageStates",
    "PandoError",
    "PoolDescription",
    "PoolExhaustedError",
    "Session",
    "SessionLostError",
    "Shard",
    "Stats",
    "UnavailableError",
    "UnknownLockError",
]
