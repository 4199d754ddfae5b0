#ifndef PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clients/python/native/buffers.h"

namespace pando::python {

// The type of a field in a message, and its type in Python.
enum class Kind {
  kBool,      // bool
  kInt32,     // int; enums, too
  kUint32,    // int
  kUint64,    // int
  kFixed64,   // int
  kString,    // str
  kBytes,     // a contiguous buffer, such as bytes; back, bytes
  kMessage,   // a tuple, or None if it is not set
  kMessages,  // a list of tuples
  kUint32s,   // packed fixed32: a contiguous buffer of uint32; back, a numpy
              // array
  kUint64s,   // packed fixed64: a list of ints
};

class Codec;

struct Field {
  std::string name;  // for errors
  uint32_t number = 0;
  Kind kind = Kind::kBool;
  bool has_presence = false;                       // None stands for "not set"
  std::shared_ptr<const Codec> message = nullptr;  // of kMessage and kMessages
};

// Converts tuples to serialized messages of one type, and back, without message
// objects in between. A tuple holds the fields in the order in which the codec
// was given them; a shorter tuple leaves the remaining fields unset. Immutable;
// used with the GIL held.
//
// Throws nanobind::python_error with a Python exception set when a value does
// not fit its field, or when bytes are not such a message.
class Codec {
 public:
  explicit Codec(std::vector<Field> fields) : fields_(std::move(fields)) {}

  // Converts a serialized message to a tuple. Returns a new reference.
  PyObject* Decode(std::span<const std::byte> bytes) const;

 private:
  friend class Encoding;

  std::vector<Field> fields_;
};

// Serializes one tuple in two passes: the constructor computes the size, then
// Write writes to memory that the caller provides. Every value is read from
// Python once and kept in between, because an object of the caller could give
// another value the second time.
class Encoding {
 public:
  // `values` is a tuple and outlives this.
  Encoding(const Codec& codec, PyObject* values);
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  size_t size() const { return size_; }
  // Writes the message. REQUIRES: `out` has room for size() bytes.
  void Write(std::byte* out);

 private:
  size_t SizeOf(const Codec& codec, PyObject* values);
  size_t SizeOf(const Field& field, PyObject* value);
  size_t SizeOfBuffer(const Field& field, Buffer buffer);
  std::byte* Write(const Codec& codec, PyObject* values, std::byte* out);
  std::byte* Write(const Field& field, PyObject* value, std::byte* out);

  const Codec& codec_;
  PyObject* const values_;
  // In the order in which the fields are visited, the same in both passes.
  std::vector<uint64_t> numbers_;  // a list begins with its length
  std::vector<nanobind::tuple> lists_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> message_sizes_;
  size_t next_number_ = 0;
  size_t next_list_ = 0;
  size_t next_buffer_ = 0;
  size_t next_message_ = 0;
  size_t size_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_
