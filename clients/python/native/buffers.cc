#include "clients/python/native/buffers.h"

#include <nanobind/nanobind.h>

#include <string_view>

namespace pando::python {

namespace nb = nanobind;

Buffer::Buffer(PyObject* object, int flags) {
  if (PyObject_GetBuffer(object, &view_, flags) != 0) throw nb::python_error();
}

Buffer Buffer::OfBytes(PyObject* object) {
  return Buffer(object, PyBUF_C_CONTIGUOUS);
}

Buffer Buffer::OfUint32s(PyObject* object) {
  Buffer buffer(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  const Py_buffer& view = buffer.view_;
  const char* const format = view.format == nullptr ? "B" : view.format;
  const bool is_uint32 = view.itemsize == sizeof(uint32_t) && view.ndim == 1 &&
                         (format[0] == 'I' || format[0] == 'L') &&
                         format[1] == '\0';
  if (is_uint32 || view.len == 0) return buffer;
  PyErr_SetString(PyExc_TypeError, "needs a contiguous buffer of uint32");
  throw nb::python_error();
}

std::optional<Buffer> Buffer::OfIntegers(PyObject* object) {
  Buffer buffer;
  Py_buffer& view = buffer.view_;
  if (PyObject_GetBuffer(object, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) !=
      0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::string_view format = view.format == nullptr ? "B" : view.format;
  const bool are_integers =
      format.size() == 1 &&
      std::string_view("iIlLqQ").find(format[0]) != std::string_view::npos &&
      (view.itemsize == 4 || view.itemsize == 8);
  if (!are_integers || view.ndim != 1) return std::nullopt;
  return buffer;
}

// Calls numpy through Python, so that this builds without it and runs with any
// version.
NewArray NewUint32Array(size_t count) {
  static const nb::object* const empty =
      new nb::object(nb::module_::import_("numpy").attr("empty"));
  static const nb::object* const dtype =
      new nb::object(nb::module_::import_("numpy").attr("dtype")("<u4"));
  nb::object array = (*empty)(count, *dtype);
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE | PyBUF_WRITABLE) !=
      0) {
    throw nb::python_error();
  }
  // The array owns the memory, so this is valid after the view is released.
  auto* const data = static_cast<uint32_t*>(view.buf);
  PyBuffer_Release(&view);
  return {array.release().ptr(), data};
}

}  // namespace pando::python
