from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
LOCK_ACTION_RELOCK: LockAction
LOCK_ACTION_UNLOCK: LockAction
LOCK_ACTION_UNSPECIFIED: LockAction

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
    __slots__ = ["free_page_ids", "keep_duplicates", "lock_action", "lock_id", "namespace", "page_ids", "prompt_tokens", "session_id", "tokens"]
    FREE_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    KEEP_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    LOCK_ACTION_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    free_page_ids: _containers.RepeatedScalarFieldContainer[int]
    keep_duplicates: bool
    lock_action: LockAction
    lock_id: int
    namespace: _types_pb2.Namespace
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    prompt_tokens: int
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., page_ids: _Optional[_Iterable[int]] = ..., lock_id: _Optional[int] = ..., lock_action: _Optional[_Union[LockAction, str]] = ..., keep_duplicates: bool = ..., free_page_ids: _Optional[_Iterable[int]] = ..., prompt_tokens: _Optional[int] = ...) -> None: ...

class InsertResponse(_message.Message):
    __slots__ = ["canonical_page_ids", "existing_tokens", "freed_duplicates"]
    CANONICAL_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    EXISTING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FREED_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    canonical_page_ids: _containers.RepeatedScalarFieldContainer[int]
    existing_tokens: int
    freed_duplicates: int
    def __init__(self, existing_tokens: _Optional[int] = ..., canonical_page_ids: _Optional[_Iterable[int]] = ..., freed_duplicates: _Optional[int] = ...) -> None: ...

class LockRequest(_message.Message):
    __slots__ = ["namespace", "session_id", "tokens"]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    namespace: _types_pb2.Namespace
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ...) -> None: ...

class LockResponse(_message.Message):
    __slots__ = ["lock_id", "locked_tokens"]
    LOCKED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    lock_id: int
    locked_tokens: int
    def __init__(self, lock_id: _Optional[int] = ..., locked_tokens: _Optional[int] = ...) -> None: ...

class MatchPrefixRequest(_message.Message):
    __slots__ = ["lock", "max_tokens", "namespace", "reserve_tokens", "session_id", "tokens", "touch"]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RESERVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    lock: bool
    max_tokens: int
    namespace: _types_pb2.Namespace
    reserve_tokens: int
    session_id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    touch: bool
    def __init__(self, session_id: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., tokens: _Optional[_Iterable[int]] = ..., max_tokens: _Optional[int] = ..., lock: bool = ..., reserve_tokens: _Optional[int] = ..., touch: bool = ...) -> None: ...

class MatchPrefixResponse(_message.Message):
    __slots__ = ["lock_id", "matched_tokens", "page_ids", "reserved_page_ids"]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    MATCHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    lock_id: int
    matched_tokens: int
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    reserved_page_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, matched_tokens: _Optional[int] = ..., page_ids: _Optional[_Iterable[int]] = ..., lock_id: _Optional[int] = ..., reserved_page_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class UnlockRequest(_message.Message):
    __slots__ = ["lock_ids", "session_id"]
    LOCK_IDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    lock_ids: _containers.RepeatedScalarFieldContainer[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., lock_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class UnlockResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class LockAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
