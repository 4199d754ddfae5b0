from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
SHAPE_CHECKPOINT: Shape
SHAPE_PREFIX: Shape
SHAPE_UNSPECIFIED: Shape
SHAPE_WINDOW: Shape

class AcquireBlocksRequest(_message.Message):
    __slots__ = ["all", "keys", "load", "lock", "session_id"]
    ALL_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    all: bool
    keys: _containers.RepeatedCompositeFieldContainer[BlockKeys]
    load: bool
    lock: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., lock: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[BlockKeys, _Mapping]]] = ..., all: bool = ..., load: bool = ...) -> None: ...

class AcquireBlocksResponse(_message.Message):
    __slots__ = ["places"]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    places: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, places: _Optional[_Iterable[int]] = ...) -> None: ...

class AttachMemoryRequest(_message.Message):
    __slots__ = ["session_id"]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ...) -> None: ...

class AttachMemoryResponse(_message.Message):
    __slots__ = ["epoch", "memory_bytes", "memory_socket", "token"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SOCKET_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    memory_bytes: int
    memory_socket: str
    token: bytes
    def __init__(self, token: _Optional[bytes] = ..., memory_socket: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class BlockKeys(_message.Message):
    __slots__ = ["before", "keys", "kind", "shape", "window"]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    before: bytes
    keys: bytes
    kind: int
    shape: Shape
    window: int
    def __init__(self, kind: _Optional[int] = ..., keys: _Optional[bytes] = ..., before: _Optional[bytes] = ..., shape: _Optional[_Union[Shape, str]] = ..., window: _Optional[int] = ...) -> None: ...

class DiscardBlocksRequest(_message.Message):
    __slots__ = ["indices", "reservation", "session_id"]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    indices: _containers.RepeatedScalarFieldContainer[int]
    reservation: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., reservation: _Optional[int] = ..., indices: _Optional[_Iterable[int]] = ...) -> None: ...

class DiscardBlocksResponse(_message.Message):
    __slots__ = ["unknown"]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    unknown: int
    def __init__(self, unknown: _Optional[int] = ...) -> None: ...

class FindKindsRequest(_message.Message):
    __slots__ = ["kinds", "session_id"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[KindSpec]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., kinds: _Optional[_Iterable[_Union[KindSpec, _Mapping]]] = ...) -> None: ...

class FindKindsResponse(_message.Message):
    __slots__ = ["kinds"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[Kind]
    def __init__(self, kinds: _Optional[_Iterable[_Union[Kind, _Mapping]]] = ...) -> None: ...

class Kind(_message.Message):
    __slots__ = ["generation", "number", "shard_stride", "spec"]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SHARD_STRIDE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    generation: int
    number: int
    shard_stride: int
    spec: KindSpec
    def __init__(self, number: _Optional[int] = ..., generation: _Optional[int] = ..., shard_stride: _Optional[int] = ..., spec: _Optional[_Union[KindSpec, _Mapping]] = ...) -> None: ...

class KindSpec(_message.Message):
    __slots__ = ["identity", "key_bytes", "label", "namespace", "shard_bytes", "shards"]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    SHARD_BYTES_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    key_bytes: int
    label: str
    namespace: _types_pb2.Namespace
    shard_bytes: int
    shards: int
    def __init__(self, namespace: _Optional[_Union[_types_pb2.Namespace, _Mapping]] = ..., identity: _Optional[bytes] = ..., label: _Optional[str] = ..., key_bytes: _Optional[int] = ..., shard_bytes: _Optional[int] = ..., shards: _Optional[int] = ...) -> None: ...

class LookupBlocksRequest(_message.Message):
    __slots__ = ["keys", "load", "peek", "session_id"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[BlockKeys]
    load: bool
    peek: bool
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[BlockKeys, _Mapping]]] = ..., load: bool = ..., peek: bool = ...) -> None: ...

class LookupBlocksResponse(_message.Message):
    __slots__ = ["kept", "places"]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    kept: int
    places: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, places: _Optional[_Iterable[int]] = ..., kept: _Optional[int] = ...) -> None: ...

class OpenKindsRequest(_message.Message):
    __slots__ = ["kinds", "session_id"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[KindSpec]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., kinds: _Optional[_Iterable[_Union[KindSpec, _Mapping]]] = ...) -> None: ...

class OpenKindsResponse(_message.Message):
    __slots__ = ["kinds"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[Kind]
    def __init__(self, kinds: _Optional[_Iterable[_Union[Kind, _Mapping]]] = ...) -> None: ...

class PublishBlocksRequest(_message.Message):
    __slots__ = ["indices", "reservation", "session_id"]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    indices: _containers.RepeatedScalarFieldContainer[int]
    reservation: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., reservation: _Optional[int] = ..., indices: _Optional[_Iterable[int]] = ...) -> None: ...

class PublishBlocksResponse(_message.Message):
    __slots__ = ["unknown"]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    unknown: int
    def __init__(self, unknown: _Optional[int] = ...) -> None: ...

class ReleaseBlocksRequest(_message.Message):
    __slots__ = ["locks", "session_id"]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedScalarFieldContainer[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., locks: _Optional[_Iterable[int]] = ...) -> None: ...

class ReleaseBlocksResponse(_message.Message):
    __slots__ = ["unknown"]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    unknown: int
    def __init__(self, unknown: _Optional[int] = ...) -> None: ...

class ReserveBlocksRequest(_message.Message):
    __slots__ = ["all", "keys", "reservation", "session_id"]
    ALL_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    all: bool
    keys: _containers.RepeatedCompositeFieldContainer[BlockKeys]
    reservation: int
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., reservation: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[BlockKeys, _Mapping]]] = ..., all: bool = ...) -> None: ...

class ReserveBlocksResponse(_message.Message):
    __slots__ = ["places"]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    places: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, places: _Optional[_Iterable[int]] = ...) -> None: ...

class ResetKindsRequest(_message.Message):
    __slots__ = ["kinds", "session_id"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., kinds: _Optional[_Iterable[int]] = ...) -> None: ...

class ResetKindsResponse(_message.Message):
    __slots__ = ["kinds"]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[Kind]
    def __init__(self, kinds: _Optional[_Iterable[_Union[Kind, _Mapping]]] = ...) -> None: ...

class Shape(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
