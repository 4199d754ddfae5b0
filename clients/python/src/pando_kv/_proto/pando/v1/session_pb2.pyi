from pando_kv._proto.pando.v1 import types_pb2 as _types_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Draining(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ["session_id"]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    def __init__(self, session_id: _Optional[int] = ...) -> None: ...

class EndSessionResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class OpenSessionRequest(_message.Message):
    __slots__ = ["client_name", "resume_session_id"]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    client_name: str
    resume_session_id: int
    def __init__(self, client_name: _Optional[str] = ..., resume_session_id: _Optional[int] = ...) -> None: ...

class SessionEvent(_message.Message):
    __slots__ = ["draining", "opened"]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    draining: Draining
    opened: SessionOpened
    def __init__(self, opened: _Optional[_Union[SessionOpened, _Mapping]] = ..., draining: _Optional[_Union[Draining, _Mapping]] = ...) -> None: ...

class SessionOpened(_message.Message):
    __slots__ = ["epoch", "pool", "session_id"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    pool: _types_pb2.PoolDescription
    session_id: int
    def __init__(self, session_id: _Optional[int] = ..., epoch: _Optional[int] = ..., pool: _Optional[_Union[_types_pb2.PoolDescription, _Mapping]] = ...) -> None: ...
