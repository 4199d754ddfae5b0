"""Lists of tokens and page ids on the wire: packed fixed32, as they lie in memory.

Protobuf's Python API takes and gives such lists one element at a time. Fields of a
message may come in any order, so this module encodes a request as the message without
its lists, followed by the lists, each copied as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from pando_kv._native_module import native

Uint32Array = npt.NDArray[np.uint32]
MessageT = TypeVar("MessageT", bound=Message)

_WIRE = np.dtype("<u4")
_NONE = np.empty(0, _WIRE)
_MAX = 2**32 - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def is_uint32(values: Any) -> TypeGuard[Uint32Array]:
    """Returns whether `values` is a contiguous little-endian uint32 array."""
    return (
        type(values) is np.ndarray
        and values.dtype is _WIRE
        and values.ndim == 1
        and values.flags.c_contiguous
    )


def as_uint32(values: Any, name: str) -> Uint32Array:
    """Returns `values` as a contiguous little-endian uint32 array, without a copy if it
    is one already.

    Raises ValueError, which names the value at fault, for values that do not fit.
    """
    if is_uint32(values):
        return values
    if type(values) is tuple and not values:
        return _NONE
    if type(values) is list and native is not None:
        taken: Uint32Array | None = native.as_uint32(values)
        if taken is not None:
            return taken
    try:
        array = np.asarray(values)
    except OverflowError:
        raise ValueError(f"{name}: a value does not fit in 32 bits") from None
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; must have 1")
    if array.size == 0:
        return np.empty(0, _WIRE)
    if array.dtype != _WIRE:
        _check_range(array, name)
    return np.ascontiguousarray(array, _WIRE)


def _check_range(array: npt.NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "iu" and not _holds_python_ints(array):
        raise ValueError(f"{name} holds {array.dtype}; must hold integers")
    for value in (array.min(), array.max()):
        if not 0 <= value <= _MAX:
            where = int(np.argmax(array == value))
            raise ValueError(f"{name}[{where}] is {value}; must be from 0 to {_MAX}")


def _holds_python_ints(array: npt.NDArray[Any]) -> bool:
    """Returns whether an object array holds ints. numpy keeps ints that are too large
    for 64 bits as objects."""
    return array.dtype.kind == "O" and all(isinstance(v, int) for v in array)


def encode(message: Message, lists: Mapping[int, Uint32Array]) -> bytes:
    """Returns the serialized message with these repeated fixed32 fields. `lists` is
    keyed by field number."""
    parts: list[Any] = [message.SerializeToString()]
    for field, array in lists.items():
        if array.size:
            parts.append(_varint(field << 3 | _BYTES) + _varint(array.nbytes))
            parts.append(array.data)
    return b"".join(parts)


def nested(field: int, data: bytes) -> bytes:
    """Returns a serialized message as a field of another message."""
    return _varint(field << 3 | _BYTES) + _varint(len(data)) + data


def decode(
    message_type: type[MessageT], data: bytes, *fields: int
) -> tuple[MessageT, tuple[Uint32Array, ...]]:
    """Returns the message without these repeated fixed32 fields, and the fields as
    arrays."""
    chunks: dict[int, list[Uint32Array]] = {field: [] for field in fields}
    rest: list[bytes] = []
    position = 0
    while position < len(data):
        start = position
        key, position = _read_varint(data, position)
        field, wire_type = key >> 3, key & 7
        if wire_type == _BYTES:
            size, begin = _read_varint(data, position)
            position = begin + size
            if field in chunks:
                chunks[field].append(np.frombuffer(data, _WIRE, size // 4, begin))
                continue
        else:
            position = _skip(data, position, wire_type)
        rest.append(data[start:position])
    message = message_type.FromString(b"".join(rest))
    return message, tuple(_joined(chunks[field]) for field in fields)


def _joined(chunks: list[Uint32Array]) -> Uint32Array:
    # The copy is writable and aligned, and does not keep the whole response alive.
    return np.concatenate(chunks) if chunks else np.empty(0, np.uint32)


def _skip(data: bytes, position: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return _read_varint(data, position)[1]
    if wire_type == _FIXED64:
        return position + 8
    if wire_type == _FIXED32:
        return position + 4
    raise ValueError(f"response has wire type {wire_type}")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
