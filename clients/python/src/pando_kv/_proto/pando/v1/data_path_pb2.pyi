from google.rpc import status_pb2 as _status_pb2
from pando_kv._proto.pando.v1 import admin_pb2 as _admin_pb2
from pando_kv._proto.pando.v1 import blocks_pb2 as _blocks_pb2
from pando_kv._proto.pando.v1 import pool_pb2 as _pool_pb2
from pando_kv._proto.pando.v1 import prefix_cache_pb2 as _prefix_cache_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BatchRequest(_message.Message):
    __slots__ = ["requests"]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[BatchedRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[BatchedRequest, _Mapping]]] = ...) -> None: ...

class BatchResponse(_message.Message):
    __slots__ = ["responses"]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[BatchedResponse]
    def __init__(self, responses: _Optional[_Iterable[_Union[BatchedResponse, _Mapping]]] = ...) -> None: ...

class BatchedRequest(_message.Message):
    __slots__ = ["acquire_blocks", "allocate_pages", "discard_blocks", "free_pages", "get_stats", "insert", "lock", "lookup_blocks", "match_prefix", "match_prefixes", "publish_blocks", "release_blocks", "reserve_blocks", "reset_kinds", "unlock"]
    ACQUIRE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PAGES_FIELD_NUMBER: _ClassVar[int]
    DISCARD_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGES_FIELD_NUMBER: _ClassVar[int]
    GET_STATS_FIELD_NUMBER: _ClassVar[int]
    INSERT_FIELD_NUMBER: _ClassVar[int]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    MATCH_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    MATCH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESERVE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESET_KINDS_FIELD_NUMBER: _ClassVar[int]
    UNLOCK_FIELD_NUMBER: _ClassVar[int]
    acquire_blocks: _blocks_pb2.AcquireBlocksRequest
    allocate_pages: _pool_pb2.AllocatePagesRequest
    discard_blocks: _blocks_pb2.DiscardBlocksRequest
    free_pages: _pool_pb2.FreePagesRequest
    get_stats: _admin_pb2.GetStatsRequest
    insert: _prefix_cache_pb2.InsertRequest
    lock: _prefix_cache_pb2.LockRequest
    lookup_blocks: _blocks_pb2.LookupBlocksRequest
    match_prefix: _prefix_cache_pb2.MatchPrefixRequest
    match_prefixes: _prefix_cache_pb2.MatchPrefixesRequest
    publish_blocks: _blocks_pb2.PublishBlocksRequest
    release_blocks: _blocks_pb2.ReleaseBlocksRequest
    reserve_blocks: _blocks_pb2.ReserveBlocksRequest
    reset_kinds: _blocks_pb2.ResetKindsRequest
    unlock: _prefix_cache_pb2.UnlockRequest
    def __init__(self, match_prefix: _Optional[_Union[_prefix_cache_pb2.MatchPrefixRequest, _Mapping]] = ..., match_prefixes: _Optional[_Union[_prefix_cache_pb2.MatchPrefixesRequest, _Mapping]] = ..., insert: _Optional[_Union[_prefix_cache_pb2.InsertRequest, _Mapping]] = ..., lock: _Optional[_Union[_prefix_cache_pb2.LockRequest, _Mapping]] = ..., unlock: _Optional[_Union[_prefix_cache_pb2.UnlockRequest, _Mapping]] = ..., allocate_pages: _Optional[_Union[_pool_pb2.AllocatePagesRequest, _Mapping]] = ..., free_pages: _Optional[_Union[_pool_pb2.FreePagesRequest, _Mapping]] = ..., get_stats: _Optional[_Union[_admin_pb2.GetStatsRequest, _Mapping]] = ..., lookup_blocks: _Optional[_Union[_blocks_pb2.LookupBlocksRequest, _Mapping]] = ..., acquire_blocks: _Optional[_Union[_blocks_pb2.AcquireBlocksRequest, _Mapping]] = ..., reserve_blocks: _Optional[_Union[_blocks_pb2.ReserveBlocksRequest, _Mapping]] = ..., publish_blocks: _Optional[_Union[_blocks_pb2.PublishBlocksRequest, _Mapping]] = ..., discard_blocks: _Optional[_Union[_blocks_pb2.DiscardBlocksRequest, _Mapping]] = ..., release_blocks: _Optional[_Union[_blocks_pb2.ReleaseBlocksRequest, _Mapping]] = ..., reset_kinds: _Optional[_Union[_blocks_pb2.ResetKindsRequest, _Mapping]] = ...) -> None: ...

class BatchedResponse(_message.Message):
    __slots__ = ["acquire_blocks", "allocate_pages", "discard_blocks", "error", "free_pages", "get_stats", "insert", "lock", "lookup_blocks", "match_prefix", "match_prefixes", "publish_blocks", "release_blocks", "reserve_blocks", "reset_kinds", "unlock"]
    ACQUIRE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PAGES_FIELD_NUMBER: _ClassVar[int]
    DISCARD_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FREE_PAGES_FIELD_NUMBER: _ClassVar[int]
    GET_STATS_FIELD_NUMBER: _ClassVar[int]
    INSERT_FIELD_NUMBER: _ClassVar[int]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    MATCH_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    MATCH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESERVE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RESET_KINDS_FIELD_NUMBER: _ClassVar[int]
    UNLOCK_FIELD_NUMBER: _ClassVar[int]
    acquire_blocks: _blocks_pb2.AcquireBlocksResponse
    allocate_pages: _pool_pb2.AllocatePagesResponse
    discard_blocks: _blocks_pb2.DiscardBlocksResponse
    error: _status_pb2.Status
    free_pages: _pool_pb2.FreePagesResponse
    get_stats: _admin_pb2.GetStatsResponse
    insert: _prefix_cache_pb2.InsertResponse
    lock: _prefix_cache_pb2.LockResponse
    lookup_blocks: _blocks_pb2.LookupBlocksResponse
    match_prefix: _prefix_cache_pb2.MatchPrefixResponse
    match_prefixes: _prefix_cache_pb2.MatchPrefixesResponse
    publish_blocks: _blocks_pb2.PublishBlocksResponse
    release_blocks: _blocks_pb2.ReleaseBlocksResponse
    reserve_blocks: _blocks_pb2.ReserveBlocksResponse
    reset_kinds: _blocks_pb2.ResetKindsResponse
    unlock: _prefix_cache_pb2.UnlockResponse
    def __init__(self, match_prefix: _Optional[_Union[_prefix_cache_pb2.MatchPrefixResponse, _Mapping]] = ..., match_prefixes: _Optional[_Union[_prefix_cache_pb2.MatchPrefixesResponse, _Mapping]] = ..., insert: _Optional[_Union[_prefix_cache_pb2.InsertResponse, _Mapping]] = ..., lock: _Optional[_Union[_prefix_cache_pb2.LockResponse, _Mapping]] = ..., unlock: _Optional[_Union[_prefix_cache_pb2.UnlockResponse, _Mapping]] = ..., allocate_pages: _Optional[_Union[_pool_pb2.AllocatePagesResponse, _Mapping]] = ..., free_pages: _Optional[_Union[_pool_pb2.FreePagesResponse, _Mapping]] = ..., get_stats: _Optional[_Union[_admin_pb2.GetStatsResponse, _Mapping]] = ..., lookup_blocks: _Optional[_Union[_blocks_pb2.LookupBlocksResponse, _Mapping]] = ..., acquire_blocks: _Optional[_Union[_blocks_pb2.AcquireBlocksResponse, _Mapping]] = ..., reserve_blocks: _Optional[_Union[_blocks_pb2.ReserveBlocksResponse, _Mapping]] = ..., publish_blocks: _Optional[_Union[_blocks_pb2.PublishBlocksResponse, _Mapping]] = ..., discard_blocks: _Optional[_Union[_blocks_pb2.DiscardBlocksResponse, _Mapping]] = ..., release_blocks: _Optional[_Union[_blocks_pb2.ReleaseBlocksResponse, _Mapping]] = ..., reset_kinds: _Optional[_Union[_blocks_pb2.ResetKindsResponse, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class OpenLaneRequest(_message.Message):
    __slots__ = ["session_id"]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ...) -> None: ...

class OpenLaneResponse(_message.Message):
    __slots__ = ["memory_socket", "token"]
    MEMORY_SOCKET_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    memory_socket: str
    token: bytes
    def __init__(self, token: _Optional[bytes] = ..., memory_socket: _Optional[str] = ...) -> None: ...
