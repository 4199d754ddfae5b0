from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AllocatePagesRequest(_message.Message):
    __slots__ = ["min_pages", "namespace", "pages", "request_id", "session_id"]
    MIN_PAGES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    min_pages: int
    namespace: _types_pb2.Namespace
    pages: int
    request_id: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., pages: _Optional[int] = ..., namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., request_id: _Optional[int] = ..., min_pages: _Optional[int] = ...) -> None: ...

class AllocatePagesResponse(_message.Message):
    __slots__ = ["evictable_pages", "free_pages", "page_ids"]
    EVICTABLE_PAGES_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGES_FIELD_NUMBER: _ClassVar[int]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    evictable_pages: int
    free_pages: int
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, page_ids: _Optional[_Iterable[int]] = ..., free_pages: _Optional[int] = ..., evictable_pages: _Optional[int] = ...) -> None: ...

class AttachPoolRequest(_message.Message):
    __slots__ = ["fingerprint", "layout", "model", "model_digest", "session_id"]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    fingerprint: int
    layout: _types_pb2.KvLayout
    model: str
    model_digest: str
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., fingerprint: _Optional[int] = ..., model_digest: _Optional[str] = ..., layout: _Optional[_Union[_types_pb2.KvLayout, _Mapping]] = ..., model: _Optional[str] = ...) -> None: ...

class AttachPoolResponse(_message.Message):
    __slots__ = ["memory_socket", "takes_layout", "token"]
    MEMORY_SOCKET_FIELD_NUMBER: _ClassVar[int]
    TAKES_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    memory_socket: str
    takes_layout: bool
    token: bytes
    def __init__(self, token: _Optional[bytes] = ..., memory_socket: _Optional[str] = ..., takes_layout: bool = ...) -> None: ...

class DescribePoolRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DescribePoolResponse(_message.Message):
    __slots__ = ["epoch", "pool"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    pool: _types_pb2.PoolDescription
    def __init__(self, pool: _Optional[_Union[_types_pb2.PoolDescription, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class FreePagesRequest(_message.Message):
    __slots__ = ["page_ids", "request_id", "session_id"]
    PAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    page_ids: _containers.RepeatedScalarFieldContainer[int]
    request_id: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., page_ids: _Optional[_Iterable[int]] = ..., request_id: _Optional[int] = ...) -> None: ...

class FreePagesResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...
