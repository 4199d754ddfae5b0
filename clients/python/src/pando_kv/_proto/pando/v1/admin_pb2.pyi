from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

BLOCK_EVICTION_EXTENT: BlockEviction
BLOCK_EVICTION_KIND_ENDED: BlockEviction
BLOCK_EVICTION_ROOM: BlockEviction
BLOCK_EVICTION_UNSPECIFIED: BlockEviction
BLOCK_FATE_EVICTED: BlockFate
BLOCK_FATE_NEVER_STORED: BlockFate
BLOCK_FATE_OVERDUE: BlockFate
BLOCK_FATE_PENDING: BlockFate
BLOCK_FATE_READY: BlockFate
BLOCK_FATE_UNSPECIFIED: BlockFate
DESCRIPTOR: _descriptor.FileDescriptor
MATCH_END_COMPLETE: MatchEnd
MATCH_END_DIVERGED: MatchEnd
MATCH_END_EVICTED: MatchEnd
MATCH_END_NEVER_CACHED: MatchEnd
MATCH_END_PAGE_FLOOR: MatchEnd
MATCH_END_UNSPECIFIED: MatchEnd
NOT_LOADED_NOT_ASKED: NotLoaded
NOT_LOADED_NO_MOVER: NotLoaded
NOT_LOADED_NO_ROOM: NotLoaded
NOT_LOADED_TOO_FEW: NotLoaded
NOT_LOADED_UNSPECIFIED: NotLoaded

class BlockFigures(_message.Message):
    __slots__ = ["evictable_blocks", "evicted_blocks", "hits", "kinds", "locks", "memory_bytes", "misses", "protected_blocks", "published_blocks", "quarantined_blocks", "quotas", "recoveries", "reservations", "reserved_blocks", "used_bytes"]
    EVICTABLE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    EVICTED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MISSES_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    RECOVERIES_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    evictable_blocks: int
    evicted_blocks: int
    hits: int
    kinds: int
    locks: int
    memory_bytes: int
    misses: int
    protected_blocks: int
    published_blocks: int
    quarantined_blocks: int
    quotas: _containers.RepeatedCompositeFieldContainer[BlockQuota]
    recoveries: int
    reservations: int
    reserved_blocks: int
    used_bytes: int
    def __init__(self, memory_bytes: _Optional[int] = ..., used_bytes: _Optional[int] = ..., kinds: _Optional[int] = ..., locks: _Optional[int] = ..., reservations: _Optional[int] = ..., evictable_blocks: _Optional[int] = ..., protected_blocks: _Optional[int] = ..., reserved_blocks: _Optional[int] = ..., quarantined_blocks: _Optional[int] = ..., hits: _Optional[int] = ..., misses: _Optional[int] = ..., published_blocks: _Optional[int] = ..., evicted_blocks: _Optional[int] = ..., recoveries: _Optional[int] = ..., quotas: _Optional[_Iterable[_Union[BlockQuota, _Mapping]]] = ...) -> None: ...

class BlockQuota(_message.Message):
    __slots__ = ["cap_bytes", "floor_bytes", "name", "used_bytes"]
    CAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOOR_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    cap_bytes: int
    floor_bytes: int
    name: str
    used_bytes: int
    def __init__(self, name: _Optional[str] = ..., floor_bytes: _Optional[int] = ..., cap_bytes: _Optional[int] = ..., used_bytes: _Optional[int] = ...) -> None: ...

class CacheCounters(_message.Message):
    __slots__ = ["allocated_pages", "allocation_failures", "duplicate_pages", "evicted_pages_for_allocation", "evicted_pages_for_quota", "evicted_pages_for_watermark", "evicted_pages_on_request", "hit_tokens", "inserted_pages", "inserts", "locks_released", "locks_taken", "matches", "pending_waits", "pending_waits_given_up", "pending_waits_published", "pending_waits_timed_out", "quarantined_pages", "query_tokens", "quota_rejections", "repeated_requests", "sessions_closed", "sessions_lost", "sessions_opened"]
    ALLOCATED_PAGES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FAILURES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_PAGES_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_FOR_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_FOR_QUOTA_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_FOR_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_ON_REQUEST_FIELD_NUMBER: _ClassVar[int]
    HIT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    INSERTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    INSERTS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_RELEASED_FIELD_NUMBER: _ClassVar[int]
    LOCKS_TAKEN_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    PENDING_WAITS_FIELD_NUMBER: _ClassVar[int]
    PENDING_WAITS_GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    PENDING_WAITS_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    PENDING_WAITS_TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_PAGES_FIELD_NUMBER: _ClassVar[int]
    QUERY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    QUOTA_REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    REPEATED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_LOST_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_OPENED_FIELD_NUMBER: _ClassVar[int]
    allocated_pages: int
    allocation_failures: int
    duplicate_pages: int
    evicted_pages_for_allocation: int
    evicted_pages_for_quota: int
    evicted_pages_for_watermark: int
    evicted_pages_on_request: int
    hit_tokens: int
    inserted_pages: int
    inserts: int
    locks_released: int
    locks_taken: int
    matches: int
    pending_waits: int
    pending_waits_given_up: int
    pending_waits_published: int
    pending_waits_timed_out: int
    quarantined_pages: int
    query_tokens: int
    quota_rejections: int
    repeated_requests: int
    sessions_closed: int
    sessions_lost: int
    sessions_opened: int
    def __init__(self, matches: _Optional[int] = ..., query_tokens: _Optional[int] = ..., hit_tokens: _Optional[int] = ..., inserts: _Optional[int] = ..., inserted_pages: _Optional[int] = ..., duplicate_pages: _Optional[int] = ..., allocated_pages: _Optional[int] = ..., evicted_pages_for_allocation: _Optional[int] = ..., evicted_pages_on_request: _Optional[int] = ..., allocation_failures: _Optional[int] = ..., locks_taken: _Optional[int] = ..., locks_released: _Optional[int] = ..., sessions_opened: _Optional[int] = ..., sessions_closed: _Optional[int] = ..., sessions_lost: _Optional[int] = ..., quarantined_pages: _Optional[int] = ..., evicted_pages_for_watermark: _Optional[int] = ..., evicted_pages_for_quota: _Optional[int] = ..., quota_rejections: _Optional[int] = ..., pending_waits: _Optional[int] = ..., pending_waits_published: _Optional[int] = ..., pending_waits_given_up: _Optional[int] = ..., pending_waits_timed_out: _Optional[int] = ..., repeated_requests: _Optional[int] = ...) -> None: ...

class CheckInvariantsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class CheckInvariantsResponse(_message.Message):
    __slots__ = ["violations"]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    violations: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, violations: _Optional[_Iterable[str]] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ["exit"]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    exit: bool
    def __init__(self, exit: bool = ...) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DumpTreeRequest(_message.Message):
    __slots__ = ["limit", "namespace_number"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    limit: int
    namespace_number: int
    def __init__(self, limit: _Optional[int] = ..., namespace_number: _Optional[int] = ...) -> None: ...

class DumpTreeResponse(_message.Message):
    __slots__ = ["nodes", "omitted"]
    NODES_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[TreeNode]
    omitted: int
    def __init__(self, nodes: _Optional[_Iterable[_Union[TreeNode, _Mapping]]] = ..., omitted: _Optional[int] = ...) -> None: ...

class ExplainBlockRequest(_message.Message):
    __slots__ = ["key", "kind_number"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_NUMBER_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    kind_number: int
    def __init__(self, kind_number: _Optional[int] = ..., key: _Optional[bytes] = ...) -> None: ...

class ExplainBlockResponse(_message.Message):
    __slots__ = ["age_ms", "client_name", "evicted_for", "fate", "followers", "is_kept", "locks", "session_number"]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    EVICTED_FOR_FIELD_NUMBER: _ClassVar[int]
    FATE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWERS_FIELD_NUMBER: _ClassVar[int]
    IS_KEPT_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    age_ms: int
    client_name: str
    evicted_for: BlockEviction
    fate: BlockFate
    followers: int
    is_kept: bool
    locks: int
    session_number: int
    def __init__(self, fate: _Optional[_Union[BlockFate, str]] = ..., locks: _Optional[int] = ..., followers: _Optional[int] = ..., age_ms: _Optional[int] = ..., evicted_for: _Optional[_Union[BlockEviction, str]] = ..., session_number: _Optional[int] = ..., client_name: _Optional[str] = ..., is_kept: bool = ...) -> None: ...

class ExplainMatchRequest(_message.Message):
    __slots__ = ["namespace", "tokens"]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    namespace: _types_pb2.Namespace
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ...) -> None: ...

class ExplainMatchResponse(_message.Message):
    __slots__ = ["diverged_at", "end", "evicted_for", "evicted_ms_ago", "is_pending", "loadable_tier", "loadable_tokens", "locks", "longer_in_namespaces", "matched_tokens", "not_loaded"]
    DIVERGED_AT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EVICTED_FOR_FIELD_NUMBER: _ClassVar[int]
    EVICTED_MS_AGO_FIELD_NUMBER: _ClassVar[int]
    IS_PENDING_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TIER_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    LONGER_IN_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    MATCHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NOT_LOADED_FIELD_NUMBER: _ClassVar[int]
    diverged_at: int
    end: MatchEnd
    evicted_for: _types_pb2.EvictionReason
    evicted_ms_ago: int
    is_pending: bool
    loadable_tier: _types_pb2.Tier
    loadable_tokens: int
    locks: _containers.RepeatedCompositeFieldContainer[LockInfo]
    longer_in_namespaces: _containers.RepeatedScalarFieldContainer[int]
    matched_tokens: int
    not_loaded: NotLoaded
    def __init__(self, matched_tokens: _Optional[int] = ..., end: _Optional[_Union[MatchEnd, str]] = ..., diverged_at: _Optional[int] = ..., evicted_for: _Optional[_Union[_types_pb2.EvictionReason, str]] = ..., evicted_ms_ago: _Optional[int] = ..., is_pending: bool = ..., longer_in_namespaces: _Optional[_Iterable[int]] = ..., locks: _Optional[_Iterable[_Union[LockInfo, _Mapping]]] = ..., loadable_tokens: _Optional[int] = ..., loadable_tier: _Optional[_Union[_types_pb2.Tier, str]] = ..., not_loaded: _Optional[_Union[NotLoaded, str]] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ["namespace", "namespace_number"]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    namespace: _types_pb2.Namespace
    namespace_number: int
    def __init__(self, namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., namespace_number: _Optional[int] = ...) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ["evicted_pages", "protected_pages"]
    EVICTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    evicted_pages: int
    protected_pages: int
    def __init__(self, evicted_pages: _Optional[int] = ..., protected_pages: _Optional[int] = ...) -> None: ...

class FreeQuarantineRequest(_message.Message):
    __slots__ = ["session_number"]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    session_number: int
    def __init__(self, session_number: _Optional[int] = ...) -> None: ...

class FreeQuarantineResponse(_message.Message):
    __slots__ = ["freed_pages"]
    FREED_PAGES_FIELD_NUMBER: _ClassVar[int]
    freed_pages: int
    def __init__(self, freed_pages: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ["blocks", "console_url", "counters", "epoch", "eviction_policy", "held_pages", "locks", "movers", "namespaces", "nodes", "page_recoveries", "pages", "quota_classes", "reuse", "sessions", "tiers", "version", "waiting_matches"]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    CONSOLE_URL_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EVICTION_POLICY_FIELD_NUMBER: _ClassVar[int]
    HELD_PAGES_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    MOVERS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    PAGE_RECOVERIES_FIELD_NUMBER: _ClassVar[int]
    QUOTA_CLASSES_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WAITING_MATCHES_FIELD_NUMBER: _ClassVar[int]
    blocks: BlockFigures
    console_url: str
    counters: CacheCounters
    epoch: int
    eviction_policy: str
    held_pages: int
    locks: int
    movers: _containers.RepeatedCompositeFieldContainer[MoverFigures]
    namespaces: int
    nodes: int
    page_recoveries: int
    pages: PageStates
    quota_classes: _containers.RepeatedCompositeFieldContainer[QuotaClass]
    reuse: ReuseStats
    sessions: int
    tiers: _containers.RepeatedCompositeFieldContainer[TierFigures]
    version: str
    waiting_matches: int
    def __init__(self, pages: _Optional[_Union[PageStates, _Mapping]] = ..., counters: _Optional[_Union[CacheCounters, _Mapping]] = ..., sessions: _Optional[int] = ..., locks: _Optional[int] = ..., nodes: _Optional[int] = ..., namespaces: _Optional[int] = ..., epoch: _Optional[int] = ..., eviction_policy: _Optional[str] = ..., waiting_matches: _Optional[int] = ..., quota_classes: _Optional[_Iterable[_Union[QuotaClass, _Mapping]]] = ..., version: _Optional[str] = ..., held_pages: _Optional[int] = ..., reuse: _Optional[_Union[ReuseStats, _Mapping]] = ..., blocks: _Optional[_Union[BlockFigures, _Mapping]] = ..., tiers: _Optional[_Iterable[_Union[TierFigures, _Mapping]]] = ..., movers: _Optional[_Iterable[_Union[MoverFigures, _Mapping]]] = ..., console_url: _Optional[str] = ..., page_recoveries: _Optional[int] = ...) -> None: ...

class KindInfo(_message.Message):
    __slots__ = ["block_bytes", "evictable_blocks", "evicted_blocks", "extra_key", "free_blocks", "generation", "has_cache_salt", "hits", "identity", "is_newest", "key_bytes", "kind_number", "label", "memory_bytes", "misses", "no_room", "overdue", "pending", "protected_blocks", "published_blocks", "reserved_blocks", "sessions", "shards"]
    BLOCK_BYTES_FIELD_NUMBER: _ClassVar[int]
    EVICTABLE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    EVICTED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_KEY_FIELD_NUMBER: _ClassVar[int]
    FREE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HAS_CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    IS_NEWEST_FIELD_NUMBER: _ClassVar[int]
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    KIND_NUMBER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MISSES_FIELD_NUMBER: _ClassVar[int]
    NO_ROOM_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    block_bytes: int
    evictable_blocks: int
    evicted_blocks: int
    extra_key: str
    free_blocks: int
    generation: int
    has_cache_salt: bool
    hits: int
    identity: bytes
    is_newest: bool
    key_bytes: int
    kind_number: int
    label: str
    memory_bytes: int
    misses: int
    no_room: int
    overdue: int
    pending: int
    protected_blocks: int
    published_blocks: int
    reserved_blocks: int
    sessions: int
    shards: int
    def __init__(self, kind_number: _Optional[int] = ..., generation: _Optional[int] = ..., is_newest: bool = ..., label: _Optional[str] = ..., identity: _Optional[bytes] = ..., extra_key: _Optional[str] = ..., has_cache_salt: bool = ..., key_bytes: _Optional[int] = ..., shards: _Optional[int] = ..., block_bytes: _Optional[int] = ..., sessions: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., evictable_blocks: _Optional[int] = ..., protected_blocks: _Optional[int] = ..., reserved_blocks: _Optional[int] = ..., free_blocks: _Optional[int] = ..., hits: _Optional[int] = ..., misses: _Optional[int] = ..., pending: _Optional[int] = ..., published_blocks: _Optional[int] = ..., evicted_blocks: _Optional[int] = ..., no_room: _Optional[int] = ..., overdue: _Optional[int] = ...) -> None: ...

class ListKindsRequest(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListKindsResponse(_message.Message):
    __slots__ = ["kinds", "total"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[KindInfo]
    total: int
    def __init__(self, kinds: _Optional[_Iterable[_Union[KindInfo, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class ListLocksRequest(_message.Message):
    __slots__ = ["limit", "session_number"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    limit: int
    session_number: int
    def __init__(self, limit: _Optional[int] = ..., session_number: _Optional[int] = ...) -> None: ...

class ListLocksResponse(_message.Message):
    __slots__ = ["locks", "total"]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[LockInfo]
    total: int
    def __init__(self, locks: _Optional[_Iterable[_Union[LockInfo, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ["namespaces", "total"]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceInfo]
    total: int
    def __init__(self, namespaces: _Optional[_Iterable[_Union[NamespaceInfo, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class ListQuarantineRequest(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListQuarantineResponse(_message.Message):
    __slots__ = ["sessions", "total"]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[QuarantineInfo]
    total: int
    def __init__(self, sessions: _Optional[_Iterable[_Union[QuarantineInfo, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ["sessions", "total"]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionInfo]
    total: int
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionInfo, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class LockInfo(_message.Message):
    __slots__ = ["age_ms", "client_name", "locked_tokens", "namespace_number", "session_number"]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    LOCKED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    age_ms: int
    client_name: str
    locked_tokens: int
    namespace_number: int
    session_number: int
    def __init__(self, session_number: _Optional[int] = ..., client_name: _Optional[str] = ..., locked_tokens: _Optional[int] = ..., age_ms: _Optional[int] = ..., namespace_number: _Optional[int] = ...) -> None: ...

class MoverFigures(_message.Message):
    __slots__ = ["device", "is_present"]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    IS_PRESENT_FIELD_NUMBER: _ClassVar[int]
    device: str
    is_present: bool
    def __init__(self, device: _Optional[str] = ..., is_present: bool = ...) -> None: ...

class NamespaceInfo(_message.Message):
    __slots__ = ["bigram", "evictable_pages", "extra_key", "has_cache_salt", "nodes", "number", "protected_pages"]
    BIGRAM_FIELD_NUMBER: _ClassVar[int]
    EVICTABLE_PAGES_FIELD_NUMBER: _ClassVar[int]
    EXTRA_KEY_FIELD_NUMBER: _ClassVar[int]
    HAS_CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    bigram: bool
    evictable_pages: int
    extra_key: str
    has_cache_salt: bool
    nodes: int
    number: int
    protected_pages: int
    def __init__(self, number: _Optional[int] = ..., extra_key: _Optional[str] = ..., has_cache_salt: bool = ..., bigram: bool = ..., evictable_pages: _Optional[int] = ..., protected_pages: _Optional[int] = ..., nodes: _Optional[int] = ...) -> None: ...

class PageStates(_message.Message):
    __slots__ = ["capacity", "evictable", "free", "padding", "protected", "quarantined", "reserved"]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    EVICTABLE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    capacity: int
    evictable: int
    free: int
    padding: int
    protected: int
    quarantined: int
    reserved: int
    def __init__(self, free: _Optional[int] = ..., reserved: _Optional[int] = ..., evictable: _Optional[int] = ..., protected: _Optional[int] = ..., quarantined: _Optional[int] = ..., padding: _Optional[int] = ..., capacity: _Optional[int] = ...) -> None: ...

class QuarantineInfo(_message.Message):
    __slots__ = ["age_ms", "client_name", "has_unwatched", "is_held", "living_pids", "locked_blocks", "pages", "reserved_blocks", "session_number"]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    HAS_UNWATCHED_FIELD_NUMBER: _ClassVar[int]
    IS_HELD_FIELD_NUMBER: _ClassVar[int]
    LIVING_PIDS_FIELD_NUMBER: _ClassVar[int]
    LOCKED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    age_ms: int
    client_name: str
    has_unwatched: bool
    is_held: bool
    living_pids: _containers.RepeatedScalarFieldContainer[int]
    locked_blocks: int
    pages: int
    reserved_blocks: int
    session_number: int
    def __init__(self, session_number: _Optional[int] = ..., client_name: _Optional[str] = ..., pages: _Optional[int] = ..., age_ms: _Optional[int] = ..., is_held: bool = ..., living_pids: _Optional[_Iterable[int]] = ..., has_unwatched: bool = ..., locked_blocks: _Optional[int] = ..., reserved_blocks: _Optional[int] = ...) -> None: ...

class QuotaClass(_message.Message):
    __slots__ = ["cached_pages", "cap_pages", "floor_pages", "max_retention_seconds", "name", "reserved_pages", "spared_leaves"]
    CACHED_PAGES_FIELD_NUMBER: _ClassVar[int]
    CAP_PAGES_FIELD_NUMBER: _ClassVar[int]
    FLOOR_PAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_RETENTION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PAGES_FIELD_NUMBER: _ClassVar[int]
    SPARED_LEAVES_FIELD_NUMBER: _ClassVar[int]
    cached_pages: int
    cap_pages: int
    floor_pages: int
    max_retention_seconds: int
    name: str
    reserved_pages: int
    spared_leaves: int
    def __init__(self, name: _Optional[str] = ..., floor_pages: _Optional[int] = ..., cap_pages: _Optional[int] = ..., reserved_pages: _Optional[int] = ..., cached_pages: _Optional[int] = ..., max_retention_seconds: _Optional[int] = ..., spared_leaves: _Optional[int] = ...) -> None: ...

class ReleaseLocksRequest(_message.Message):
    __slots__ = ["session_number"]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    session_number: int
    def __init__(self, session_number: _Optional[int] = ...) -> None: ...

class ReleaseLocksResponse(_message.Message):
    __slots__ = ["released_locks"]
    RELEASED_LOCKS_FIELD_NUMBER: _ClassVar[int]
    released_locks: int
    def __init__(self, released_locks: _Optional[int] = ...) -> None: ...

class RestartRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RestartResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ReuseStats(_message.Message):
    __slots__ = ["hit_pages", "lru_hit_pages", "requested_pages"]
    HIT_PAGES_FIELD_NUMBER: _ClassVar[int]
    LRU_HIT_PAGES_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    hit_pages: int
    lru_hit_pages: int
    requested_pages: int
    def __init__(self, requested_pages: _Optional[int] = ..., hit_pages: _Optional[int] = ..., lru_hit_pages: _Optional[int] = ...) -> None: ...

class SessionInfo(_message.Message):
    __slots__ = ["age_ms", "client_name", "is_attached", "is_connected", "is_internal", "locked_blocks", "locks", "reserved_blocks", "reserved_pages", "session_number", "steps"]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    IS_ATTACHED_FIELD_NUMBER: _ClassVar[int]
    IS_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    IS_INTERNAL_FIELD_NUMBER: _ClassVar[int]
    LOCKED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PAGES_FIELD_NUMBER: _ClassVar[int]
    SESSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    age_ms: int
    client_name: str
    is_attached: bool
    is_connected: bool
    is_internal: bool
    locked_blocks: int
    locks: int
    reserved_blocks: int
    reserved_pages: int
    session_number: int
    steps: int
    def __init__(self, session_number: _Optional[int] = ..., client_name: _Optional[str] = ..., locks: _Optional[int] = ..., reserved_pages: _Optional[int] = ..., age_ms: _Optional[int] = ..., is_connected: bool = ..., is_attached: bool = ..., locked_blocks: _Optional[int] = ..., reserved_blocks: _Optional[int] = ..., is_internal: bool = ..., steps: _Optional[int] = ...) -> None: ...

class SetEvictionPolicyRequest(_message.Message):
    __slots__ = ["policy"]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: str
    def __init__(self, policy: _Optional[str] = ...) -> None: ...

class SetEvictionPolicyResponse(_message.Message):
    __slots__ = ["previous"]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    previous: str
    def __init__(self, previous: _Optional[str] = ...) -> None: ...

class TierFigures(_message.Message):
    __slots__ = ["capacity_pages", "dropped_pages", "failures", "held_pages", "loaded_pages", "page_bytes", "refuses_loads", "refuses_stores", "stored_pages", "tier"]
    CAPACITY_PAGES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_PAGES_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    HELD_PAGES_FIELD_NUMBER: _ClassVar[int]
    LOADED_PAGES_FIELD_NUMBER: _ClassVar[int]
    PAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    REFUSES_LOADS_FIELD_NUMBER: _ClassVar[int]
    REFUSES_STORES_FIELD_NUMBER: _ClassVar[int]
    STORED_PAGES_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    capacity_pages: int
    dropped_pages: int
    failures: int
    held_pages: int
    loaded_pages: int
    page_bytes: int
    refuses_loads: bool
    refuses_stores: bool
    stored_pages: int
    tier: _types_pb2.Tier
    def __init__(self, tier: _Optional[_Union[_types_pb2.Tier, str]] = ..., capacity_pages: _Optional[int] = ..., held_pages: _Optional[int] = ..., page_bytes: _Optional[int] = ..., stored_pages: _Optional[int] = ..., loaded_pages: _Optional[int] = ..., dropped_pages: _Optional[int] = ..., failures: _Optional[int] = ..., refuses_stores: bool = ..., refuses_loads: bool = ...) -> None: ...

class TreeNode(_message.Message):
    __slots__ = ["age_accesses", "begin_token", "depth", "hits", "locks", "namespace_number", "node", "pages", "parent", "priority", "tokens"]
    AGE_ACCESSES_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    age_accesses: int
    begin_token: int
    depth: int
    hits: int
    locks: int
    namespace_number: int
    node: int
    pages: int
    parent: int
    priority: int
    tokens: int
    def __init__(self, node: _Optional[int] = ..., parent: _Optional[int] = ..., namespace_number: _Optional[int] = ..., depth: _Optional[int] = ..., begin_token: _Optional[int] = ..., tokens: _Optional[int] = ..., pages: _Optional[int] = ..., locks: _Optional[int] = ..., hits: _Optional[int] = ..., priority: _Optional[int] = ..., age_accesses: _Optional[int] = ...) -> None: ...

class MatchEnd(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class NotLoaded(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class BlockFate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class BlockEviction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
