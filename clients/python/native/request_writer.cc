#include "clients/python/native/request_writer.h"

#include <cstring>
#include <limits>

#include "clients/python/native/wire.h"

namespace pando::python {

namespace nb = nanobind;

constexpr uint64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

std::optional<uint64_t> PlainNumber(nb::handle value, uint64_t max) {
  if (Py_TYPE(value.ptr()) != &PyLong_Type) return std::nullopt;
  const uint64_t number = PyLong_AsUnsignedLongLong(value.ptr());
  if (number == std::numeric_limits<uint64_t>::max() && PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (number > max) return std::nullopt;
  return number;
}

void RequestWriter::Varint(uint64_t value) {
  std::byte bytes[10];
  const std::byte* const end = WriteVarint(value, bytes);
  head_.append(reinterpret_cast<const char*>(bytes),
               static_cast<size_t>(end - bytes));
}

void RequestWriter::Fixed64(uint32_t field, uint64_t value) {
  if (value == 0) return;
  Varint(TagOf(field, WireType::kFixed64));
  head_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void RequestWriter::Number(uint32_t field, uint64_t value) {
  if (value == 0) return;
  Varint(TagOf(field, WireType::kVarint));
  Varint(value);
}

void RequestWriter::Fixed64s(uint32_t field, std::span<const uint64_t> values) {
  if (values.empty()) return;
  Bytes(field,
        {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

bool RequestWriter::Bool(uint32_t field, nb::handle value) {
  if (value.ptr() != Py_True && value.ptr() != Py_False) Refuse();
  const bool is_true = value.ptr() == Py_True;
  Number(field, is_true);
  return is_true;
}

uint32_t RequestWriter::Uint32(uint32_t field, nb::handle value) {
  const std::optional<uint64_t> number = PlainNumber(value, kMaxUint32);
  if (!number) Refuse();
  Number(field, number.value_or(0));
  return static_cast<uint32_t>(number.value_or(0));
}

void RequestWriter::Int32(uint32_t field, nb::handle value) {
  // Negative numbers are rare.
  const auto number = PlainNumber(value, std::numeric_limits<int32_t>::max());
  if (!number) Refuse();
  Number(field, number.value_or(0));
}

void RequestWriter::OptionalBool(uint32_t field, nb::handle value) {
  if (value.is_none()) return;
  if (value.ptr() != Py_True && value.ptr() != Py_False) Refuse();
  Varint(TagOf(field, WireType::kVarint));
  Varint(value.ptr() == Py_True);
}

void RequestWriter::OptionalUint32(uint32_t field, nb::handle value) {
  if (value.is_none()) return;
  const std::optional<uint64_t> number = PlainNumber(value, kMaxUint32);
  if (!number) Refuse();
  Varint(TagOf(field, WireType::kVarint));
  Varint(number.value_or(0));
}

void RequestWriter::OptionalText(uint32_t field, nb::handle value) {
  if (value.is_none()) return;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_Check(value.ptr())
                               ? PyUnicode_AsUTF8AndSize(value.ptr(), &size)
                               : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return Refuse();
  }
  Bytes(field, {text, static_cast<size_t>(size)});
}

void RequestWriter::Message(uint32_t field, const RequestWriter& message) {
  if (!message.is_plain()) Refuse();
  Bytes(field, message.head_);
}

void RequestWriter::Bytes(uint32_t field, std::string_view bytes) {
  Varint(TagOf(field, WireType::kBytes));
  Varint(bytes.size());
  head_.append(bytes);
}

void RequestWriter::List(uint32_t field, const Uint32List& list, size_t begin) {
  const ListField added = {field, &list, begin};
  if (added.bytes() > 0) lists_[list_count_++] = added;
}

size_t RequestWriter::size() const {
  size_t size = head_.size();
  for (size_t i = 0; i < list_count_; ++i) {
    const size_t bytes = lists_[i].bytes();
    size += VarintSize(TagOf(lists_[i].field, WireType::kBytes)) +
            VarintSize(bytes) + bytes;
  }
  return size;
}

bool RequestWriter::Write(std::byte* out) const {
  std::memcpy(out, head_.data(), head_.size());
  out += head_.size();
  for (size_t i = 0; i < list_count_; ++i) {
    const ListField& each = lists_[i];
    out = WriteVarint(TagOf(each.field, WireType::kBytes), out);
    out = WriteVarint(each.bytes(), out);
    if (!each.list->Write(each.begin, out)) return false;
    out += each.bytes();
  }
  return true;
}

}  // namespace pando::python
