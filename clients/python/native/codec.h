#ifndef PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clients/python/native/buffers.h"

namespace pando::python {

// What a field of a message holds, and what stands for it in Python.
enum class Kind {
  kBool,      // bool
  kInt32,     // int; enums, too
  kUint32,    // int
  kFixed64,   // int
  kString,    // str
  kMessage,   // a tuple; None: not set
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

// Turns tuples into serialized messages of one type, and back, without objects
// in between. A tuple has the fields in the order that they were given in; one
// that is shorter leaves the rest unset. Immutable; used with the GIL held.
//
// Throws nanobind::python_error with a Python exception set: for values that do
// not fit their field, and for bytes that are no such message.
class Codec {
 public:
  explicit Codec(std::vector<Field> fields) : fields_(std::move(fields)) {}

  // The tuple that a message stands for. A new reference.
  PyObject* Decode(std::span<const std::byte> bytes) const;

 private:
  friend class Encoding;

  std::vector<Field> fields_;
};

// One message on its way out: first it says how large it is, then it is written
// to where there is room. Holds the buffers in between.
class Encoding {
 public:
  // `values` is a tuple and outlives this.
  Encoding(const Codec& codec, PyObject* values);
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  size_t size() const { return size_; }
  // REQUIRES: room for size() bytes.
  void Write(std::byte* out);

 private:
  size_t SizeOf(const Codec& codec, PyObject* values);
  size_t SizeOf(const Field& field, PyObject* value);
  std::byte* Write(const Codec& codec, PyObject* values, std::byte* out);
  std::byte* Write(const Field& field, PyObject* value, std::byte* out);

  const Codec& codec_;
  PyObject* const values_;
  // In the order in which the fields are visited, the same both times.
  std::vector<Uint32Buffer> buffers_;
  std::vector<size_t> message_sizes_;
  size_t next_buffer_ = 0;
  size_t next_message_ = 0;
  size_t size_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_CODEC_H_
