from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
DTYPE_BFLOAT16: DType
DTYPE_FLOAT16: DType
DTYPE_FLOAT32: DType
DTYPE_FLOAT8_E4M3: DType
DTYPE_FLOAT8_E5M2: DType
DTYPE_OPAQUE: DType
DTYPE_UNSPECIFIED: DType
EVICTION_REASON_ALLOCATION: EvictionReason
EVICTION_REASON_FLUSH: EvictionReason
EVICTION_REASON_QUOTA: EvictionReason
EVICTION_REASON_REQUEST: EvictionReason
EVICTION_REASON_UNSPECIFIED: EvictionReason
EVICTION_REASON_WATERMARK: EvictionReason
LAYOUT_ORDER_LAYER_FIRST: LayoutOrder
LAYOUT_ORDER_PAGE_FIRST: LayoutOrder
LAYOUT_ORDER_UNSPECIFIED: LayoutOrder
TIER_DISK: Tier
TIER_HOST: Tier
TIER_SHARED: Tier
TIER_UNSPECIFIED: Tier

class KvLayout(_message.Message):
    __slots__ = ["dtype", "head_size", "head_stride", "heads", "kv_planes", "kv_stride", "layer_stride", "layers", "order", "page_format", "page_stride", "page_tokens", "piece_bytes", "token_stride"]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    HEAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    HEAD_STRIDE_FIELD_NUMBER: _ClassVar[int]
    KV_PLANES_FIELD_NUMBER: _ClassVar[int]
    KV_STRIDE_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    LAYER_STRIDE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    PAGE_STRIDE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PIECE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STRIDE_FIELD_NUMBER: _ClassVar[int]
    dtype: DType
    head_size: int
    head_stride: int
    heads: int
    kv_planes: int
    kv_stride: int
    layer_stride: int
    layers: int
    order: LayoutOrder
    page_format: str
    page_stride: int
    page_tokens: int
    piece_bytes: int
    token_stride: int
    def __init__(self, layers: _Optional[int] = ..., kv_planes: _Optional[int] = ..., heads: _Optional[int] = ..., head_size: _Optional[int] = ..., dtype: _Optional[_Union[DType, str]] = ..., page_tokens: _Optional[int] = ..., order: _Optional[_Union[LayoutOrder, str]] = ..., layer_stride: _Optional[int] = ..., page_stride: _Optional[int] = ..., kv_stride: _Optional[int] = ..., token_stride: _Optional[int] = ..., head_stride: _Optional[int] = ..., piece_bytes: _Optional[int] = ..., page_format: _Optional[str] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ["bigram", "cache_salt", "extra_key"]
    BIGRAM_FIELD_NUMBER: _ClassVar[int]
    CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_KEY_FIELD_NUMBER: _ClassVar[int]
    bigram: bool
    cache_salt: str
    extra_key: str
    def __init__(self, extra_key: _Optional[str] = ..., cache_salt: _Optional[str] = ..., bigram: bool = ...) -> None: ...

class PoolDescription(_message.Message):
    __slots__ = ["capacity_pages", "fingerprint", "is_absent", "is_open", "layout", "model", "page_bytes", "shards"]
    CAPACITY_PAGES_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    IS_ABSENT_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    capacity_pages: int
    fingerprint: int
    is_absent: bool
    is_open: bool
    layout: KvLayout
    model: str
    page_bytes: int
    shards: _containers.RepeatedCompositeFieldContainer[Shard]
    def __init__(self, capacity_pages: _Optional[int] = ..., layout: _Optional[_Union[KvLayout, _Mapping]] = ..., shards: _Optional[_Iterable[_Union[Shard, _Mapping]]] = ..., model: _Optional[str] = ..., fingerprint: _Optional[int] = ..., page_bytes: _Optional[int] = ..., is_open: bool = ..., is_absent: bool = ...) -> None: ...

class PrefixHandle(_message.Message):
    __slots__ = ["epoch", "node", "tokens"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    node: int
    tokens: int
    def __init__(self, epoch: _Optional[int] = ..., node: _Optional[int] = ..., tokens: _Optional[int] = ...) -> None: ...

class Shard(_message.Message):
    __slots__ = ["device", "index", "size_bytes"]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    device: str
    index: int
    size_bytes: int
    def __init__(self, index: _Optional[int] = ..., device: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class EvictionReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class LayoutOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Tier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
