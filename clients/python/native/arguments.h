#ifndef PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "clients/python/native/request_writer.h"

// Writes Python's arguments of the calls that an engine makes for each request
// as fields of messages. A value that is not plain makes the request not plain:
// see RequestWriter.
namespace pando::python {

// The names of the attributes that are read. They are interned, so that
// look-ups are fast.
struct Names {
  Names();

  nanobind::object session, room, lock_id, is_in_doubt, value, epoch, node,
      tokens;
};
const Names& names();

// Returns an attribute; null, with no exception set, if it cannot be read.
// Throws nanobind::python_error for an exception that is not an Exception, such
// as KeyboardInterrupt.
nanobind::object AttributeOf(nanobind::handle object,
                             const nanobind::object& name);
// Returns an attribute that is a plain number of at most `max`, or none if it
// is not.
std::optional<uint64_t> NumberOf(
    nanobind::handle object, const nanobind::object& name,
    uint64_t max = std::numeric_limits<uint64_t>::max());

// Returns a number of seconds to wait, at least 0; none if `value` is no plain
// int or float.
std::optional<double> SecondsOf(nanobind::handle value);

// Returns the value of a bool.
bool IsTrue(RequestWriter& request, nanobind::handle value);

// Writes the number of a Python enum.
void WriteEnum(RequestWriter& request, uint32_t field, nanobind::handle value);
// `type` is the Python type of namespaces.
void WriteNamespace(RequestWriter& request, uint32_t field,
                    nanobind::handle name_space, nanobind::handle type);

// The position at which the tokens of a request begin: after a handle, or at
// the start of the prompt.
struct Place {
  size_t token = 0;
  size_t page = 0;
};

// Writes the handle `after` if it is of this epoch, and returns where the
// tokens after it begin. `type` is the Python type of handles. The handle may
// cover at most `tokens` tokens.
Place WriteAfter(RequestWriter& request, uint32_t field, nanobind::handle after,
                 nanobind::handle type, uint64_t epoch, size_t tokens,
                 size_t page_tokens);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_
