#include "clients/python/native/flat_message.h"

#include <algorithm>
#include <optional>

#include "clients/python/native/buffers.h"
#include "clients/python/native/wire.h"

namespace pando::python {
namespace {

namespace nb = nanobind;
using Bytes = std::span<const std::byte>;

void Check(bool is_right) {
  if (is_right) return;
  PyErr_SetString(PyExc_ValueError, "these bytes are not such a message");
  throw nb::python_error();
}

template <typename T>
T Checked(std::optional<T> read) {
  Check(read.has_value());
  return *read;
}

}  // namespace

FlatMessage::FlatMessage(Bytes bytes) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const uint64_t tag = Checked(reader.Varint());
    const auto type = static_cast<WireType>(tag & 7);
    const uint64_t field = tag >> 3;
    if (field >= numbers_.size() || type == WireType::kFixed32) {
      Check(reader.Skip(type));
    } else if (type == WireType::kVarint) {
      numbers_[field] = Checked(reader.Varint());
    } else if (type == WireType::kFixed64) {
      numbers_[field] = Checked(reader.Fixed<uint64_t>());
    } else {
      Check(type == WireType::kBytes);
      pieces_.emplace_back(field, Checked(reader.Bytes()));
    }
  }
}

Bytes FlatMessage::message(uint32_t field) const {
  const auto found =
      std::find_if(pieces_.begin(), pieces_.end(),
                   [field](const auto& each) { return each.first == field; });
  return found == pieces_.end() ? Bytes() : found->second;
}

size_t FlatMessage::CountOf(uint32_t field) const {
  size_t count = 0;
  for (const auto& [number, piece] : pieces_) {
    if (number != field) continue;
    Check(piece.size() % sizeof(uint32_t) == 0);
    count += piece.size() / sizeof(uint32_t);
  }
  return count;
}

nb::object FlatMessage::NewArray(uint32_t field, Bytes rest) const {
  const struct NewArray made =
      NewUint32Array(CountOf(field) + rest.size() / sizeof(uint32_t));
  auto* out = reinterpret_cast<std::byte*>(made.data);
  for (const auto& [number, piece] : pieces_) {
    if (number == field) out = std::copy(piece.begin(), piece.end(), out);
  }
  std::copy(rest.begin(), rest.end(), out);
  return nb::steal(made.array);
}

}  // namespace pando::python
