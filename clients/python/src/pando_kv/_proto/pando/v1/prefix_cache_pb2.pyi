from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
EXPECTED_REUSE_ENDED: ExpectedReuse
EXPECTED_REUSE_SOON: ExpectedReuse
EXPECTED_REUSE_UNSPECIFIED: ExpectedReuse
LOAD_NO: Load
LOAD_START: Load
LOAD_UNSPECIFIED: Load
LOCK_ACTION_RELOCK: LockAction
LOCK_ACTION_UNLOCK: LockAction
LOCK_ACTION_UNSPECIFIED: LockAction
PENDING_OUTCOME_GIVEN_UP: PendingOutcome
PENDING_OUTCOME_LOADED: PendingOutcome
PENDING_OUTCOME_NOT_AWAITED: PendingOutcome
PENDING_OUTCOME_OWNER_LOST: PendingOutcome
PENDING_OUTCOME_PUBLISHED: PendingOutcome
PENDING_OUTCOME_TIMED_OUT: PendingOutcome
PENDING_OUTCOME_UNSPECIFIED: PendingOutcome

class EvictRequest(_message.Message):
    __slots__ = ["pages"]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    pages: int
    def __init__(self, pages: _Optional[int] = ...) -> None: ...

class EvictResponse(_message.Message):
    __slots__ = ["evicted_pages"]
    EVICTED_PAGES_FIELD_NUMBER: _ClassVar[int]
    evicted_pages: int
    def __init__(self, evicted_pages: _Optional[int] = ...) -> None: ...

class InsertRequest(_message.Message):
    __slots__ = ["after", "expected_reuse", "free_page_ids", "keep_duplicates", "lock_action", "lock_id", "namespace", "output_tokens", "page_ids", "priority", "prompt_tokens", "request_id", "retain_seconds", "session_id", "tokens"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REUSE_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    KEEP_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    LOCK_ACTION_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RETAIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    after: _types_pb2.PrefixHandle
    expected_reuse: ExpectedReuse
    free_page_ids: _containers.RepeatedScalarFieldContainer[int]
    keep_duplicates: bool
    lock_action: LockAction
    lock_id: int
    namespace: _types_pb2.Namespace
    output_tokens: int
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    priority: int
    prompt_tokens: int
    request_id: int
    retain_seconds: int
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., page_ids: _Optional[_Iterable[int]] = ..., lock_id: _Optional[int] = ..., lock_action: _Optional[_Union[LockAction, str]] = ..., keep_duplicates: bool = ..., free_page_ids: _Optional[_Iterable[int]] = ..., prompt_tokens: _Optional[int] = ..., after: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ..., priority: _Optional[int] = ..., request_id: _Optional[int] = ..., output_tokens: _Optional[int] = ..., expected_reuse: _Optional[_Union[ExpectedReuse, str]] = ..., retain_seconds: _Optional[int] = ...) -> None: ...

class InsertResponse(_message.Message):
    __slots__ = ["canonical_page_ids", "evictable_pages", "existing_tokens", "free_pages", "freed_duplicates", "handle"]
    CANONICAL_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    EVICTABLE_PAGES_FIELD_NUMBER: _ClassVar[int]
    EXISTING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FREED_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGES_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    canonical_page_ids: _containers.RepeatedScalarFieldContainer[int]
    evictable_pages: int
    existing_tokens: int
    free_pages: int
    freed_duplicates: int
    handle: _types_pb2.PrefixHandle
    def __init__(self, existing_tokens: _Optional[int] = ..., canonical_page_ids: _Optional[_Iterable[int]] = ..., freed_duplicates: _Optional[int] = ..., handle: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ..., free_pages: _Optional[int] = ..., evictable_pages: _Optional[int] = ...) -> None: ...

class LockRequest(_message.Message):
    __slots__ = ["after", "namespace", "request_id", "session_id", "tokens"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    after: _types_pb2.PrefixHandle
    namespace: _types_pb2.Namespace
    request_id: int
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., after: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ..., request_id: _Optional[int] = ...) -> None: ...

class LockResponse(_message.Message):
    __slots__ = ["handle", "lock_id", "locked_tokens"]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LOCKED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    handle: _types_pb2.PrefixHandle
    lock_id: int
    locked_tokens: int
    def __init__(self, lock_id: _Optional[int] = ..., locked_tokens: _Optional[int] = ..., handle: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ...) -> None: ...

class MatchPrefixRequest(_message.Message):
    __slots__ = ["after", "load", "lock", "max_tokens", "namespace", "pending_wait_ms", "request_id", "reserve_tokens", "session_id", "tokens", "touch"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PENDING_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESERVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    after: _types_pb2.PrefixHandle
    load: Load
    lock: bool
    max_tokens: int
    namespace: _types_pb2.Namespace
    pending_wait_ms: int
    request_id: int
    reserve_tokens: int
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    touch: bool
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., max_tokens: _Optional[int] = ..., lock: bool = ..., reserve_tokens: _Optional[int] = ..., touch: bool = ..., after: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ..., pending_wait_ms: _Optional[int] = ..., request_id: _Optional[int] = ..., load: _Optional[_Union[Load, str]] = ...) -> None: ...

class MatchPrefixResponse(_message.Message):
    __slots__ = ["evictable_pages", "free_pages", "handle", "loadable_tier", "loadable_tokens", "lock_id", "matched_tokens", "page_ids", "pending", "reserved_page_ids"]
    EVICTABLE_PAGES_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGES_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TIER_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    MATCHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    evictable_pages: int
    free_pages: int
    handle: _types_pb2.PrefixHandle
    loadable_tier: _types_pb2.Tier
    loadable_tokens: int
    lock_id: int
    matched_tokens: int
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    pending: PendingOutcome
    reserved_page_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, matched_tokens: _Optional[int] = ..., page_ids: _Optional[_Iterable[int]] = ..., lock_id: _Optional[int] = ..., reserved_page_ids: _Optional[_Iterable[int]] = ..., handle: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ..., pending: _Optional[_Union[PendingOutcome, str]] = ..., free_pages: _Optional[int] = ..., evictable_pages: _Optional[int] = ..., loadable_tokens: _Optional[int] = ..., loadable_tier: _Optional[_Union[_types_pb2.Tier, str]] = ...) -> None: ...

class MatchPrefixesRequest(_message.Message):
    __slots__ = ["queries", "tell_loadable"]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    TELL_LOADABLE_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedCompositeFieldContainer[PrefixQuery]
    tell_loadable: bool
    def __init__(self, queries: _Optional[_Iterable[_Union[PrefixQuery, _Mapping]]] = ..., tell_loadable: bool = ...) -> None: ...

class MatchPrefixesResponse(_message.Message):
    __slots__ = ["scores"]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PrefixScore]
    def __init__(self, scores: _Optional[_Iterable[_Union[PrefixScore, _Mapping]]] = ...) -> None: ...

class PrefixQuery(_message.Message):
    __slots__ = ["after", "max_tokens", "namespace", "tokens"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    after: _types_pb2.PrefixHandle
    max_tokens: int
    namespace: _types_pb2.Namespace
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., max_tokens: _Optional[int] = ..., after: _Optional[_Union[_types_pb2.PrefixHandle, _Mapping]] = ...) -> None: ...

class PrefixScore(_message.Message):
    __slots__ = ["is_handle_gone", "is_pending", "loadable_tier", "loadable_tokens", "matched_tokens"]
    IS_HANDLE_GONE_FIELD_NUMBER: _ClassVar[int]
    IS_PENDING_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TIER_FIELD_NUMBER: _ClassVar[int]
    LOADABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    is_handle_gone: bool
    is_pending: bool
    loadable_tier: _types_pb2.Tier
    loadable_tokens: int
    matched_tokens: int
    def __init__(self, matched_tokens: _Optional[int] = ..., is_pending: bool = ..., is_handle_gone: bool = ..., loadable_tokens: _Optional[int] = ..., loadable_tier: _Optional[_Union[_types_pb2.Tier, str]] = ...) -> None: ...

class UnlockRequest(_message.Message):
    __slots__ = ["lock_ids", "request_id", "session_id"]
    LOCK_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    lock_ids: _containers.RepeatedScalarFieldContainer[int]
    request_id: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., lock_ids: _Optional[_Iterable[int]] = ..., request_id: _Optional[int] = ...) -> None: ...

class UnlockResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Load(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class PendingOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class ExpectedReuse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class LockAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
