#ifndef PANDO_CLIENTS_PYTHON_NATIVE_BUFFERS_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_BUFFERS_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "clients/python/native/stable_buffer.h"

namespace pando::python {

// A view of the contiguous memory of a Python object, such as a numpy array.
// Move-only.
class Buffer {
 public:
  // Both throw nanobind::python_error for any other object.
  static Buffer OfBytes(PyObject* object);
  static Buffer OfUint32s(PyObject* object);
  // Returns none, with no exception set, if the object is no contiguous buffer
  // of integers of 4 or 8 bytes.
  static std::optional<Buffer> OfIntegers(PyObject* object);

  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf),
            static_cast<size_t>(view_.len)};
  }
  // These describe a buffer that OfIntegers made.
  size_t item_bytes() const { return static_cast<size_t>(view_.itemsize); }
  bool is_signed() const { return view_.format[0] >= 'a'; }

 private:
  Buffer() = default;
  Buffer(PyObject* object, int flags);

  Py_buffer view_ = {};
};

// Makes a numpy array of `count` uint32; `array` is a new reference, `data`
// points to the elements.
struct NewArray {
  PyObject* array;
  uint32_t* data;
};
NewArray NewUint32Array(size_t count);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_BUFFERS_H_
