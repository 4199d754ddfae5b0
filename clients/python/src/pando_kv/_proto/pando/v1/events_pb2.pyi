from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AllBlocksCleared(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class BlocksRemoved(_message.Message):
    __slots__ = ["block_hashes", "reason"]
    BLOCK_HASHES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    block_hashes: _containers.RepeatedScalarFieldContainer[bytes]
    reason: _types_pb2.EvictionReason
    def __init__(self, block_hashes: _Optional[_Iterable[bytes]] = ..., reason: _Optional[_Union[_types_pb2.EvictionReason, str]] = ...) -> None: ...

class BlocksStored(_message.Message):
    __slots__ = ["bigram", "block_hashes", "extra_key", "has_cache_salt", "page_tokens", "parent_block_hash", "tokens"]
    BIGRAM_FIELD_NUMBER: _ClassVar[int]
    BLOCK_HASHES_FIELD_NUMBER: _ClassVar[int]
    EXTRA_KEY_FIELD_NUMBER: _ClassVar[int]
    HAS_CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PARENT_BLOCK_HASH_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    bigram: bool
    block_hashes: _containers.RepeatedScalarFieldContainer[bytes]
    extra_key: str
    has_cache_salt: bool
    page_tokens: int
    parent_block_hash: bytes
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, block_hashes: _Optional[_Iterable[bytes]] = ..., parent_block_hash: _Optional[bytes] = ..., tokens: _Optional[_Iterable[int]] = ..., page_tokens: _Optional[int] = ..., extra_key: _Optional[str] = ..., has_cache_salt: bool = ..., bigram: bool = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ["cleared", "lost", "removed", "sequence", "snapshot_end", "stored"]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_END_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    cleared: AllBlocksCleared
    lost: EventsLost
    removed: BlocksRemoved
    sequence: int
    snapshot_end: SnapshotEnd
    stored: BlocksStored
    def __init__(self, sequence: _Optional[int] = ..., stored: _Optional[_Union[BlocksStored, _Mapping]] = ..., removed: _Optional[_Union[BlocksRemoved, _Mapping]] = ..., cleared: _Optional[_Union[AllBlocksCleared, _Mapping]] = ..., lost: _Optional[_Union[EventsLost, _Mapping]] = ..., snapshot_end: _Optional[_Union[SnapshotEnd, _Mapping]] = ...) -> None: ...

class EventsLost(_message.Message):
    __slots__ = ["first_sequence", "last_sequence"]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    last_sequence: int
    def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ...) -> None: ...

class SnapshotEnd(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ["after_sequence", "epoch"]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    after_sequence: int
    epoch: int
    def __init__(self, after_sequence: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ["epoch", "events"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, epoch: _Optional[int] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...
