#ifndef PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "clients/python/native/request_writer.h"

// Python's arguments of the calls of requests, written as fields. A value that
// is not plain makes the request not plain.
namespace pando::python {

// The attributes that are looked at, interned: so they are found faster.
struct Names {
  Names();

  nanobind::object session, room, lock_id, is_in_doubt, value, epoch, node,
      tokens;
};
const Names& names();

// An attribute; null, with no exception set, where it is missing. Throws
// nanobind::python_error where an interrupt came as it was asked for.
nanobind::object AttributeOf(nanobind::handle object,
                             const nanobind::object& name);
// An attribute that is a plain number of at most `max`.
std::optional<uint64_t> NumberOf(
    nanobind::handle object, const nanobind::object& name,
    uint64_t max = std::numeric_limits<uint64_t>::max());

// Seconds to wait, at least 0; none: not a plain number of them.
std::optional<double> SecondsOf(nanobind::handle value);

// The value of a bool.
bool IsTrue(RequestWriter& request, nanobind::handle value);

void WriteEnum(RequestWriter& request, uint32_t field, nanobind::handle value);
// `type` is that of namespaces.
void WriteNamespace(RequestWriter& request, uint32_t field,
                    nanobind::handle name_space, nanobind::handle type);

// Where tokens begin: after a handle, or at the start of the prompt.
struct Place {
  size_t token = 0;
  size_t page = 0;
};

// Writes the handle `after` where it is one of this epoch. `type` is that of
// handles; it may cover all of so many tokens.
Place WriteAfter(RequestWriter& request, uint32_t field, nanobind::handle after,
                 nanobind::handle type, uint64_t epoch, size_t tokens,
                 size_t page_tokens);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_ARGUMENTS_H_
