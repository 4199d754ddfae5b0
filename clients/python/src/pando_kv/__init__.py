"""Client of Pando, one KV cache under many LLM engines.

`Client` is a worker's session, `Operator` asks without one; `pando_kv.aio` has their
asyncio twins.
"""

from pando_kv._batch import Answer
from pando_kv._memory_socket import SessionLink
from pando_kv._operator_client import Operator
from pando_kv._session import Session
from pando_kv.client import Batch, Client, Lock
from pando_kv.errors import (
    AccessDeniedError,
    DeadlineError,
    DrainingError,
    HandleGoneError,
    InvalidRequestError,
    LayoutMismatchError,
    LockInDoubtError,
    LockMovedError,
    NotAllowedError,
    PageNotOwnedError,
    PandoError,
    PoolExhaustedError,
    QuotaExceededError,
    RateLimitedError,
    RequestIdReusedError,
    SessionLimitError,
    SessionLostError,
    UnavailableError,
    UnknownLockError,
)
from pando_kv.events import (
    AllBlocksCleared,
    BlocksRemoved,
    BlocksStored,
    Event,
    EventsLost,
    SnapshotEnd,
)
from pando_kv.layout import DType, KvLayout, LayoutOrder, PoolDescription, Shard
from pando_kv.operators import (
    EvictionReason,
    Explanation,
    Listing,
    LockInfo,
    MatchEnd,
    NamespaceInfo,
    QuarantineInfo,
    SessionInfo,
    TreeDump,
    TreeNode,
)
from pando_kv.pool import MappedPool
from pando_kv.results import (
    CacheCounters,
    Flush,
    Gauges,
    Insert,
    Match,
    Namespace,
    PageRoom,
    PageStates,
    PendingOutcome,
    PrefixHandle,
    PrefixQuery,
    PrefixScore,
    QuotaClass,
    ReuseStats,
    Stats,
)
from pando_kv.tls import Tls
from pando_kv.torch_views import TorchViews

__version__ = "0.1.0"

__all__ = [
    "AccessDeniedError",
    "AllBlocksCleared",
    "Answer",
    "Batch",
    "BlocksRemoved",
    "BlocksStored",
    "CacheCounters",
    "Client",
    "DType",
    "DeadlineError",
    "DrainingError",
    "Event",
    "EventsLost",
    "EvictionReason",
    "Explanation",
    "Flush",
    "Gauges",
    "HandleGoneError",
    "Insert",
    "InvalidRequestError",
    "KvLayout",
    "LayoutMismatchError",
    "LayoutOrder",
    "Listing",
    "Lock",
    "LockInDoubtError",
    "LockInfo",
    "LockMovedError",
    "MappedPool",
    "Match",
    "MatchEnd",
    "Namespace",
    "NamespaceInfo",
    "NotAllowedError",
    "Operator",
    "PageNotOwnedError",
    "PageRoom",
    "PageStates",
    "PandoError",
    "PendingOutcome",
    "PoolDescription",
    "PoolExhaustedError",
    "PrefixHandle",
    "PrefixQuery",
    "PrefixScore",
    "QuarantineInfo",
    "QuotaClass",
    "QuotaExceededError",
    "RateLimitedError",
    "RequestIdReusedError",
    "ReuseStats",
    "Session",
    "SessionInfo",
    "SessionLimitError",
    "SessionLink",
    "SessionLostError",
    "Shard",
    "SnapshotEnd",
    "Stats",
    "Tls",
    "TorchViews",
    "TreeDump",
    "TreeNode",
    "UnavailableError",
    "UnknownLockError",
]
