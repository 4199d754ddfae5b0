// Converts tuples to messages.
#include <nanobind/nanobind.h>

#include <limits>
#include <utility>

#include "clients/python/native/codec.h"
#include "clients/python/native/wire.h"

namespace pando::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void Raise(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  throw nb::python_error();
}

// The error is like "max_tokens is -1; must be from 0 to 4294967295".
[[noreturn]] void RaiseOutOfRange(const Field& field, PyObject* value,
                                  const char* range) {
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s is %R; must be %s", field.name.c_str(),
               value, range);
  throw nb::python_error();
}

uint64_t UnsignedOf(const Field& field, PyObject* value, uint64_t max,
                    const char* range) {
  nb::object index = nb::steal(PyNumber_Index(value));
  if (!index.is_valid()) RaiseOutOfRange(field, value, range);
  const uint64_t number = PyLong_AsUnsignedLongLong(index.ptr());
  if (PyErr_Occurred() || number > max) RaiseOutOfRange(field, value, range);
  return number;
}

uint64_t Uint64Of(const Field& field, PyObject* value) {
  return UnsignedOf(field, value, std::numeric_limits<uint64_t>::max(),
                    "from 0 to 18446744073709551615");
}

uint64_t Uint32Of(const Field& field, PyObject* value) {
  return UnsignedOf(field, value, std::numeric_limits<uint32_t>::max(),
                    "from 0 to 4294967295");
}

// Returns the value as a varint holds it: negative numbers in 64 bits.
uint64_t Int32Of(const Field& field, PyObject* value) {
  constexpr const char* kRange = "from -2147483648 to 2147483647";
  nb::object index = nb::steal(PyNumber_Index(value));
  if (!index.is_valid()) RaiseOutOfRange(field, value, kRange);
  const long number = PyLong_AsLong(index.ptr());
  if (PyErr_Occurred() || number < std::numeric_limits<int32_t>::min() ||
      number > std::numeric_limits<int32_t>::max()) {
    RaiseOutOfRange(field, value, kRange);
  }
  return static_cast<uint64_t>(static_cast<int64_t>(number));
}

// Returns the truth of any value, as Python sees it.
uint64_t BoolOf(PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) throw nb::python_error();
  return static_cast<uint64_t>(truth);
}

// Returns the number that is written for a field whose kind is a number.
uint64_t NumberOf(const Field& field, PyObject* value) {
  switch (field.kind) {
    case Kind::kBool:
      return BoolOf(value);
    case Kind::kInt32:
      return Int32Of(field, value);
    case Kind::kUint32:
      return Uint32Of(field, value);
    default:
      return Uint64Of(field, value);
  }
}

std::string_view TextOf(const Field& field, PyObject* value) {
  if (!PyUnicode_Check(value)) RaiseOutOfRange(field, value, "a str");
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

// Returns a list or tuple as a tuple, which other threads cannot change.
nb::tuple TupleOf(PyObject* value) {
  if (!PyList_Check(value) && !PyTuple_Check(value)) {
    Raise(PyExc_TypeError, "needs a list or tuple");
  }
  nb::object tuple = nb::steal(PySequence_Tuple(value));
  if (!tuple.is_valid()) throw nb::python_error();
  return nb::borrow<nb::tuple>(tuple);
}

// The items of a tuple, which must outlive this object.
class Items {
 public:
  explicit Items(PyObject* tuple)
      : tuple_(tuple), size_(static_cast<size_t>(PyTuple_Size(tuple))) {}

  size_t size() const { return size_; }
  PyObject* operator[](size_t i) const {
    return PyTuple_GetItem(tuple_, static_cast<Py_ssize_t>(i));
  }

 private:
  PyObject* const tuple_;
  const size_t size_;
};

size_t TagSize(const Field& field) {
  return VarintSize(TagOf(field.number, WireType::kVarint));
}

size_t SizeOfBytes(const Field& field, size_t size) {
  return TagSize(field) + VarintSize(size) + size;
}

std::byte* WriteTag(const Field& field, WireType type, std::byte* out) {
  return WriteVarint(TagOf(field.number, type), out);
}

std::byte* WriteBytes(const Field& field, const void* data, size_t size,
                      std::byte* out) {
  out = WriteVarint(size, WriteTag(field, WireType::kBytes, out));
  if (size > 0) std::memcpy(out, data, size);
  return out + size;
}

// Returns whether a field with this number is left out, because it is the
// default.
bool IsLeftOut(const Field& field, uint64_t number) {
  return number == 0 && !field.has_presence;
}

}  // namespace

Encoding::Encoding(const Codec& codec, PyObject* values)
    : codec_(codec), values_(values), size_(SizeOf(codec, values)) {}

void Encoding::Write(std::byte* out) { Write(codec_, values_, out); }

size_t Encoding::SizeOf(const Codec& codec, PyObject* values) {
  if (!PyTuple_Check(values)) Raise(PyExc_TypeError, "needs a tuple");
  const Items items(values);
  if (items.size() > codec.fields_.size()) {
    Raise(PyExc_ValueError, "the message has fewer fields");
  }
  size_t size = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] != Py_None) size += SizeOf(codec.fields_[i], items[i]);
  }
  return size;
}

size_t Encoding::SizeOf(const Field& field, PyObject* value) {
  switch (field.kind) {
    case Kind::kBool:
    case Kind::kInt32:
    case Kind::kUint32:
    case Kind::kUint64: {
      const uint64_t number = numbers_.emplace_back(NumberOf(field, value));
      return IsLeftOut(field, number) ? 0 : TagSize(field) + VarintSize(number);
    }
    case Kind::kFixed64: {
      const uint64_t number = numbers_.emplace_back(Uint64Of(field, value));
      return IsLeftOut(field, number) ? 0 : TagSize(field) + sizeof number;
    }
    case Kind::kString: {
      const size_t size = TextOf(field, value).size();
      return size == 0 && !field.has_presence ? 0 : SizeOfBytes(field, size);
    }
    case Kind::kMessage: {
      const size_t place = message_sizes_.size();
      message_sizes_.push_back(0);
      const size_t size = SizeOf(*field.message, value);
      message_sizes_[place] = size;
      return SizeOfBytes(field, size);
    }
    case Kind::kMessages: {
      size_t size = 0;
      const nb::tuple list = TupleOf(value);
      lists_.push_back(list);
      const Items items(list.ptr());
      for (size_t i = 0; i < items.size(); ++i) {
        const size_t place = message_sizes_.size();
        message_sizes_.push_back(0);
        const size_t item_size = SizeOf(*field.message, items[i]);
        message_sizes_[place] = item_size;
        size += SizeOfBytes(field, item_size);
      }
      return size;
    }
    case Kind::kBytes:
      return SizeOfBuffer(field, Buffer::OfBytes(value));
    case Kind::kUint32s:
      return SizeOfBuffer(field, Buffer::OfUint32s(value));
    case Kind::kUint64s: {
      const nb::tuple list = TupleOf(value);
      const Items items(list.ptr());
      numbers_.push_back(items.size());
      for (size_t i = 0; i < items.size(); ++i) {
        numbers_.push_back(Uint64Of(field, items[i]));
      }
      return items.size() == 0
                 ? 0
                 : SizeOfBytes(field, items.size() * sizeof(uint64_t));
    }
  }
  return 0;
}

size_t Encoding::SizeOfBuffer(const Field& field, Buffer buffer) {
  const size_t size = buffer.bytes().size();
  buffers_.push_back(std::move(buffer));
  return size == 0 && !field.has_presence ? 0 : SizeOfBytes(field, size);
}

std::byte* Encoding::Write(const Codec& codec, PyObject* values,
                           std::byte* out) {
  const Items items(values);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] != Py_None) out = Write(codec.fields_[i], items[i], out);
  }
  return out;
}

std::byte* Encoding::Write(const Field& field, PyObject* value,
                           std::byte* out) {
  switch (field.kind) {
    case Kind::kBool:
    case Kind::kInt32:
    case Kind::kUint32:
    case Kind::kUint64: {
      const uint64_t number = numbers_[next_number_++];
      if (IsLeftOut(field, number)) return out;
      return WriteVarint(number, WriteTag(field, WireType::kVarint, out));
    }
    case Kind::kFixed64: {
      const uint64_t number = numbers_[next_number_++];
      if (IsLeftOut(field, number)) return out;
      out = WriteTag(field, WireType::kFixed64, out);
      std::memcpy(out, &number, sizeof number);
      return out + sizeof number;
    }
    case Kind::kString: {
      const std::string_view text = TextOf(field, value);
      if (text.empty() && !field.has_presence) return out;
      return WriteBytes(field, text.data(), text.size(), out);
    }
    case Kind::kMessage:
      out = WriteVarint(message_sizes_[next_message_++],
                        WriteTag(field, WireType::kBytes, out));
      return Write(*field.message, value, out);
    case Kind::kMessages: {
      const Items items(lists_[next_list_++].ptr());
      for (size_t i = 0; i < items.size(); ++i) {
        out = WriteVarint(message_sizes_[next_message_++],
                          WriteTag(field, WireType::kBytes, out));
        out = Write(*field.message, items[i], out);
      }
      return out;
    }
    case Kind::kBytes:
    case Kind::kUint32s: {
      const std::span<const std::byte> bytes = buffers_[next_buffer_++].bytes();
      if (bytes.empty() && !field.has_presence) return out;
      return WriteBytes(field, bytes.data(), bytes.size(), out);
    }
    case Kind::kUint64s: {
      const size_t count = numbers_[next_number_++];
      const uint64_t* const first = numbers_.data() + next_number_;
      next_number_ += count;
      return count == 0
                 ? out
                 : WriteBytes(field, first, count * sizeof(uint64_t), out);
    }
  }
  return out;
}

}  // namespace pando::python
