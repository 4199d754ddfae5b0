#ifndef PANDO_CLIENTS_PYTHON_NATIVE_UINT32_LIST_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_UINT32_LIST_H_

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>

#include "clients/python/native/buffers.h"

namespace pando::python {

// The integers of a Python object, which are to be written as uint32. The
// object is a list or tuple of ints, a buffer of integers of 32 or 64 bits, or
// an object that numpy converts to such a buffer. Used with the GIL held. It
// reports no errors: Python code (_wire.as_uint32) takes other objects, or says
// why it cannot.
class Uint32List {
 public:
  // Returns none if it is no such object.
  static std::optional<Uint32List> Of(nanobind::handle object);

  size_t size() const { return size_; }
  // Writes the values from index `begin` on. Returns false if one of them is no
  // int, or does not fit. Runs no Python code. REQUIRES: `begin` is at most
  // size().
  bool Write(size_t begin, std::byte* out) const;

 private:
  explicit Uint32List(Buffer buffer);
  Uint32List(nanobind::object items, size_t size)
      : items_(std::move(items)), size_(size) {}

  nanobind::object items_;  // a list or tuple, unless there is a buffer
  std::optional<Buffer> buffer_;
  size_t size_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_UINT32_LIST_H_
