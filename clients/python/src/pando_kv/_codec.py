"""Codecs that represent messages as tuples: one value for each field, in the order of
the field numbers.

An unset field is None, a message is a tuple, a list of messages is a list of tuples,
and a packed list of tokens, page ids or places is a uint32 array.

The native module converts such tuples to bytes and back. Without the native module,
Protobuf's own messages are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pando_kv._native_module import native
from pando_kv._wire import decode, encode, nested


class Codec(Protocol):
    """A codec of one message type. Any thread may use it."""

    def encode(self, values: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class RawCodec:
    """The codec of calls that serialize their messages themselves. Stateless, so any
    thread may use it."""

    def encode(self, values: bytes) -> bytes:
        return values

    def decode(self, data: bytes) -> bytes:
        return data


RAW = RawCodec()

_SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_ENUM: "int32",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_MESSAGE: "message",
}
_LISTS = {
    FieldDescriptor.TYPE_FIXED32: "uint32s",
    FieldDescriptor.TYPE_FIXED64: "uint64s",
    FieldDescriptor.TYPE_MESSAGE: "messages",
}


def fields_of(message_type: type[Message]) -> list[FieldDescriptor]:
    """Returns the fields of the message in the order of the tuple's values."""
    return sorted(message_type.DESCRIPTOR.fields, key=lambda field: field.number)


def is_list(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):  # replaces the label since Protobuf 6.31
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def kind_of(field: FieldDescriptor) -> str:
    kinds = _LISTS if is_list(field) else _SCALARS
    return kinds[field.type]


def make_codec(message_type: type[Message]) -> Codec:
    make = MessageCodec if native is None else _native_codec
    return make(message_type)


def _native_codec(message_type: type[Message]) -> Codec:
    codec: Codec = native.Codec(
        [
            (
                field.name,
                field.number,
                kind_of(field),
                not is_list(field) and field.has_presence,
                _native_codec(type_of(field.message_type))
                if field.message_type
                else None,
            )
            for field in fields_of(message_type)
        ]
    )
    return codec


def type_of(message: Any) -> type[Message]:
    """Returns the message class of a message descriptor."""
    kind: type[Message] = message._concrete_class
    return kind


class MessageCodec:
    """The Python codec, used when the native module is not built. Any thread may use
    it."""

    def __init__(self, message_type: type[Message]) -> None:
        self._type = message_type
        self._fields = fields_of(message_type)
        self._nested = {
            field.number: MessageCodec(type_of(field.message_type))
            for field in self._fields
            if field.message_type
        }

    def encode(self, values: tuple[Any, ...]) -> bytes:
        if len(values) > len(self._fields):
            raise ValueError("the message has fewer fields")
        plain: dict[str, Any] = {}
        lists: dict[int, Any] = {}
        messages: list[bytes] = []
        for field, value in zip(self._fields, values, strict=False):
            if value is None:
                continue
            kind = kind_of(field)
            if kind == "uint32s":
                lists[field.number] = value
            elif field.message_type:
                codec = self._nested[field.number]
                for each in value if is_list(field) else [value]:
                    messages.append(nested(field.number, codec.encode(each)))
            else:
                plain[field.name] = bytes(value) if kind == "bytes" else value
        return b"".join([encode(self._type(**plain), lists), *messages])

    def decode(self, data: bytes) -> tuple[Any, ...]:
        lists = [f.number for f in self._fields if kind_of(f) == "uint32s"]
        message, arrays = decode(self._type, data, *lists)
        return self._values(message, iter(arrays).__next__)

    def _values(
        self, message: Message, next_array: Callable[[], Any]
    ) -> tuple[Any, ...]:
        return tuple(self._value(message, field, next_array) for field in self._fields)

    def _value(
        self, message: Message, field: FieldDescriptor, next_array: Callable[[], Any]
    ) -> Any:
        kind = kind_of(field)
        if kind == "uint32s":
            return next_array()
        value = getattr(message, field.name)
        if kind == "uint64s":
            return list(value)
        if kind == "messages":
            codec = self._nested[field.number]
            return [codec.decode(each.SerializeToString()) for each in value]
        if field.has_presence and not message.HasField(field.name):
            return None
        if kind == "message":
            return self._nested[field.number].decode(value.SerializeToString())
        return value
