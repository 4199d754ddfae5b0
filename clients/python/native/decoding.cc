// Converts messages to tuples.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>

#include "clients/python/native/codec.h"
#include "clients/python/native/wire.h"

namespace pando::python {
namespace {

namespace nb = nanobind;
using Bytes = std::span<const std::byte>;

[[noreturn]] void RaiseBroken() {
  PyErr_SetString(PyExc_ValueError, "these bytes are not such a message");
  throw nb::python_error();
}

template <typename T>
T Checked(std::optional<T> read) {
  if (!read) RaiseBroken();
  return *read;
}

// Takes over a new reference; throws if it is null.
nb::object Owned(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// Returns the value of a field that the message does not have.
nb::object DefaultOf(const Field& field) {
  if (field.has_presence) return nb::none();
  switch (field.kind) {
    case Kind::kBool:
      return nb::bool_(false);
    case Kind::kInt32:
    case Kind::kUint32:
    case Kind::kUint64:
    case Kind::kFixed64:
      return nb::int_(0);
    case Kind::kString:
      return nb::str("");
    case Kind::kBytes:
      return nb::bytes("", 0);
    case Kind::kMessage:
      return nb::none();
    case Kind::kMessages:
    case Kind::kUint64s:
      return nb::list();
    case Kind::kUint32s:
      return nb::steal(NewUint32Array(0).array);
  }
  return nb::none();
}

// Joins `before`, which is an array or null, and a further piece of the list. A
// list nearly always comes in one piece.
nb::object ArrayOf(const nb::object& before, Bytes piece) {
  if (piece.size() % sizeof(uint32_t) != 0) RaiseBroken();
  std::optional<Buffer> first;
  if (before.is_valid()) first.emplace(Buffer::OfUint32s(before.ptr()));
  const Bytes first_bytes = first ? first->bytes() : Bytes();
  const NewArray made =
      NewUint32Array((first_bytes.size() + piece.size()) / sizeof(uint32_t));
  auto* const out = reinterpret_cast<std::byte*>(made.data);
  std::copy(piece.begin(), piece.end(),
            std::copy(first_bytes.begin(), first_bytes.end(), out));
  return nb::steal(made.array);
}

nb::object NumberOf(const Field& field, uint64_t number) {
  switch (field.kind) {
    case Kind::kBool:
      return nb::bool_(number != 0);
    case Kind::kInt32:
      return nb::int_(static_cast<int32_t>(number));
    default:
      return nb::int_(number);
  }
}

bool IsVarint(Kind kind) {
  return kind == Kind::kBool || kind == Kind::kInt32 || kind == Kind::kUint32 ||
         kind == Kind::kUint64;
}

void AppendFixed64s(Bytes bytes, nb::object& list) {
  if (bytes.size() % sizeof(uint64_t) != 0) RaiseBroken();
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t number;
    std::memcpy(&number, bytes.data(), sizeof number);
    const nb::object item = Owned(PyLong_FromUnsignedLongLong(number));
    if (PyList_Append(list.ptr(), item.ptr()) != 0) throw nb::python_error();
  }
}

}  // namespace

PyObject* Codec::Decode(Bytes bytes) const {
  std::vector<nb::object> values(fields_.size());
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const uint64_t tag = Checked(reader.Varint());
    const auto type = static_cast<WireType>(tag & 7);
    const auto found = std::find_if(
        fields_.begin(), fields_.end(),
        [tag](const Field& each) { return each.number == tag >> 3; });
    if (found == fields_.end()) {
      if (!reader.Skip(type)) RaiseBroken();
      continue;
    }
    const Field& field = *found;
    nb::object& value = values[static_cast<size_t>(found - fields_.begin())];
    if (type == WireType::kVarint && IsVarint(field.kind)) {
      value = NumberOf(field, Checked(reader.Varint()));
    } else if (type == WireType::kFixed64 && field.kind == Kind::kFixed64) {
      value = nb::int_(Checked(reader.Fixed<uint64_t>()));
    } else if (type == WireType::kBytes) {
      const Bytes content = Checked(reader.Bytes());
      switch (field.kind) {
        case Kind::kString:
          value = Owned(PyUnicode_DecodeUTF8(
              reinterpret_cast<const char*>(content.data()),
              static_cast<Py_ssize_t>(content.size()), nullptr));
          break;
        case Kind::kBytes:
          value = nb::bytes(content.data(), content.size());
          break;
        case Kind::kMessage:
          value = nb::steal(field.message->Decode(content));
          break;
        case Kind::kMessages: {
          if (!value.is_valid()) value = nb::list();
          const nb::object item = nb::steal(field.message->Decode(content));
          if (PyList_Append(value.ptr(), item.ptr()) != 0) {
            throw nb::python_error();
          }
          break;
        }
        case Kind::kUint32s:
          value = ArrayOf(value, content);
          break;
        case Kind::kUint64s:
          if (!value.is_valid()) value = nb::list();
          AppendFixed64s(content, value);
          break;
        default:
          RaiseBroken();
      }
    } else {
      RaiseBroken();
    }
  }
  nb::object tuple =
      Owned(PyTuple_New(static_cast<Py_ssize_t>(fields_.size())));
  for (size_t i = 0; i < fields_.size(); ++i) {
    nb::object& value = values[i];
    if (!value.is_valid()) value = DefaultOf(fields_[i]);
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i),
                    value.release().ptr());
  }
  return tuple.release().ptr();
}

}  // namespace pando::python
