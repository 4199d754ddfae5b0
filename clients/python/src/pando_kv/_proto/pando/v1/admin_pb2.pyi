from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CacheCounters(_message.Message):
    __slots__ = ["allocated_pages", "allocation_failures", "duplicate_pages", "evicted_pages_for_allocation", "evicted_pages_on_request", "hit_tokens", "inserted_pages", "inserts", "locks_released", "locks_taken", "matches", "quarantined_pages", "query_tokens", "sessions_closed", "sessions_lost", "sessions_opened"]
    ALLOCATED_PAGES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FAILURES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_PAGES_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_FOR_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    EVICTED_PAGES_ON_REQUEST_FIELD_NUMBER: _ClassVar[int]
    HIT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    INSERTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    INSERTS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_RELEASED_FIELD_NUMBER: _ClassVar[int]
    LOCKS_TAKEN_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_PAGES_FIELD_NUMBER: _ClassVar[int]
    QUERY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_LOST_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_OPENED_FIELD_NUMBER: _ClassVar[int]
    allocated_pages: int
    allocation_failures: int
    duplicate_pages: int
    evicted_pages_for_allocation: int
    evicted_pages_on_request: int
    hit_tokens: int
    inserted_pages: int
    inserts: int
    locks_released: int
    locks_taken: int
    matches: int
    quarantined_pages: int
    query_tokens: int
    sessions_closed: int
    sessions_lost: int
    sessions_opened: int
    def __init__(self, matches: _Optional[int] = ..., query_tokens: _Optional[int] = ..., hit_tokens: _Optional[int] = ..., inserts: _Optional[int] = ..., inserted_pages: _Optional[int] = ..., duplicate_pages: _Optional[int] = ..., allocated_pages: _Optional[int] = ..., evicted_pages_for_allocation: _Optional[int] = ..., evicted_pages_on_request: _Optional[int] = ..., allocation_failures: _Optional[int] = ..., locks_taken: _Optional[int] = ..., locks_released: _Optional[int] = ..., sessions_opened: _Optional[int] = ..., sessions_closed: _Optional[int] = ..., sessions_lost: _Optional[int] = ..., quarantined_pages: _Optional[int] = ...) -> None: ...

class CheckInvariantsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class CheckInvariantsResponse(_message.Message):
    __slots__ = ["violations"]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    violations: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, violations: _Optional[_Iterable[str]] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ["evicted_pages", "protected_pages"]
    EVICTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    evicted_pages: int
    protected_pages: int
    def __init__(self, evicted_pages: _Optional[int] = ..., protected_pages: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ["counters", "epoch", "locks", "namespaces", "nodes", "pages", "sessions"]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    counters: CacheCounters
    epoch: int
    locks: int
    namespaces: int
    nodes: int
    pages: PageStates
    sessions: int
    def __init__(self, pages: _Optional[_Union[PageStates, _Mapping]] = ..., counters: _Optional[_Union[CacheCounters, _Mapping]] = ..., sessions: _Optional[int] = ..., locks: _Optional[int] = ..., nodes: _Optional[int] = ..., namespaces: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

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
