#ifndef PANDO_CLIENTS_PYTHON_NATIVE_STABLE_BUFFER_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_STABLE_BUFFER_H_

#include <Python.h>

// Python's headers declare the buffer protocol for the stable ABI from 3.11 on.
// Python 3.10 has the same structure and functions, so they are declared here
// as docs.python.org has them ("Buffer Protocol").
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000
extern "C" {

struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};

PyAPI_FUNC(int)
    PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);

}  // extern "C"

inline constexpr int PyBUF_SIMPLE = 0;
inline constexpr int PyBUF_WRITABLE = 0x0001;
inline constexpr int PyBUF_FORMAT = 0x0004;
inline constexpr int PyBUF_C_CONTIGUOUS = 0x0020 | 0x0010 | 0x0008;
#endif

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_STABLE_BUFFER_H_
