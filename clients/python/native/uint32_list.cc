#include "clients/python/native/uint32_list.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace pando::python {
namespace {

namespace nb = nanobind;

// Writes one value. Returns false if it does not fit.
bool WriteInt(PyObject* item, uint32_t& out) {
  // A bool is an int, too, but no token.
  if (item == nullptr || Py_TYPE(item) != &PyLong_Type) return false;
  const unsigned long value = PyLong_AsUnsignedLong(item);
  out = static_cast<uint32_t>(value);
  return value <= std::numeric_limits<uint32_t>::max();
}

template <PyObject* (*GetItem)(PyObject*, Py_ssize_t)>
bool WriteItems(PyObject* items, size_t begin, size_t end, std::byte* out) {
  for (size_t i = begin; i < end; ++i) {
    uint32_t value;
    if (!WriteInt(GetItem(items, static_cast<Py_ssize_t>(i)), value)) {
      PyErr_Clear();
      return false;
    }
    std::memcpy(out, &value, sizeof value);
    out += sizeof value;
  }
  return true;
}

template <typename T>
bool Narrow(std::span<const std::byte> bytes, std::byte* out) {
  uint64_t seen = 0;  // a bit is set if it is in any value
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    // A negative value sets the highest bit.
    seen |= static_cast<uint64_t>(static_cast<int64_t>(value));
    const auto narrow = static_cast<uint32_t>(value);
    std::memcpy(out + at / sizeof(T) * sizeof narrow, &narrow, sizeof narrow);
  }
  return seen <= std::numeric_limits<uint32_t>::max();
}

}  // namespace

Uint32List::Uint32List(Buffer buffer)
    : buffer_(std::move(buffer)),
      size_(buffer_->bytes().size() / buffer_->item_bytes()) {}

std::optional<Uint32List> Uint32List::Of(nb::handle object) {
  if (Py_TYPE(object.ptr()) == &PyList_Type) {
    return Uint32List(nb::borrow(object),
                      static_cast<size_t>(PyList_Size(object.ptr())));
  }
  if (Py_TYPE(object.ptr()) == &PyTuple_Type) {
    return Uint32List(nb::borrow(object),
                      static_cast<size_t>(PyTuple_Size(object.ptr())));
  }
  if (auto buffer = Buffer::OfIntegers(object.ptr())) {
    return Uint32List(*std::move(buffer));
  }
  static const nb::object* const as_array =
      new nb::object(nb::module_::import_("numpy").attr("asarray"));
  nb::object array;
  try {
    array = (*as_array)(object);
  } catch (nb::python_error&) {
    return std::nullopt;
  }
  auto buffer = Buffer::OfIntegers(array.ptr());
  if (!buffer) return std::nullopt;
  return Uint32List(*std::move(buffer));
}

bool Uint32List::Write(size_t begin, std::byte* out) const {
  if (!buffer_) {
    return Py_TYPE(items_.ptr()) == &PyList_Type
               ? WriteItems<PyList_GetItem>(items_.ptr(), begin, size_, out)
               : WriteItems<PyTuple_GetItem>(items_.ptr(), begin, size_, out);
  }
  const auto bytes = buffer_->bytes().subspan(begin * buffer_->item_bytes());
  if (buffer_->item_bytes() == sizeof(uint64_t)) {
    return buffer_->is_signed() ? Narrow<int64_t>(bytes, out)
                                : Narrow<uint64_t>(bytes, out);
  }
  if (buffer_->is_signed()) return Narrow<int32_t>(bytes, out);
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return true;
}

}  // namespace pando::python
