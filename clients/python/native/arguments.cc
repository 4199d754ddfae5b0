#include "clients/python/native/arguments.h"

#include <algorithm>
#include <cmath>

namespace pando::python {
namespace {

namespace nb = nanobind;

nb::object Interned(const char* name) {
  return nb::steal(PyUnicode_InternFromString(name));
}

}  // namespace

Names::Names()
    : session(Interned("_session")),
      room(Interned("room")),
      lock_id(Interned("lock_id")),
      is_in_doubt(Interned("is_in_doubt")),
      value(Interned("_value_")),
      epoch(Interned("epoch")),
      node(Interned("node")),
      tokens(Interned("tokens")) {}

const Names& names() {
  static const Names* const names = new Names;
  return *names;
}

nb::object AttributeOf(nb::handle object, const nb::object& name) {
  nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name.ptr()));
  if (value.is_valid()) return value;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
  PyErr_Clear();
  return value;
}

std::optional<uint64_t> NumberOf(nb::handle object, const nb::object& name,
                                 uint64_t max) {
  const nb::object value = AttributeOf(object, name);
  return value.is_valid() ? PlainNumber(value, max) : std::nullopt;
}

std::optional<double> SecondsOf(nb::handle value) {
  if (const auto whole =
          PlainNumber(value, std::numeric_limits<uint64_t>::max())) {
    return static_cast<double>(*whole);
  }
  if (Py_TYPE(value.ptr()) != &PyFloat_Type) return std::nullopt;
  const double seconds = PyFloat_AsDouble(value.ptr());
  if (std::isnan(seconds)) return std::nullopt;
  return std::max(seconds, 0.0);
}

bool IsTrue(RequestWriter& request, nb::handle value) {
  const bool is_true = value.is(nb::handle(Py_True));
  if (!is_true && !value.is(nb::handle(Py_False))) request.Refuse();
  return is_true;
}

void WriteEnum(RequestWriter& request, uint32_t field, nb::handle value) {
  const auto number = NumberOf(value, names().value);
  if (!number) request.Refuse();
  request.Number(field, number.value_or(0));
}

void WriteNamespace(RequestWriter& request, uint32_t field,
                    nb::handle name_space, nb::handle type) {
  if (name_space.is_none()) return;
  if (!name_space.type().is(type)) return request.Refuse();
  RequestWriter message;
  message.OptionalText(1, nb::object(name_space.attr("extra_key")));
  message.OptionalText(2, nb::object(name_space.attr("cache_salt")));
  message.Bool(3, nb::object(name_space.attr("bigram")));
  request.Message(field, message);
}

Place WriteAfter(RequestWriter& request, uint32_t field, nb::handle after,
                 nb::handle type, uint64_t epoch, size_t tokens,
                 size_t page_tokens) {
  if (after.is_none()) return {};
  const auto its_epoch = NumberOf(after, names().epoch);
  const auto node = NumberOf(after, names().node);
  const auto end = NumberOf(after, names().tokens, tokens);
  if (!after.type().is(type) || !its_epoch || !node || !end) {
    request.Refuse();
    return {};
  }
  // A handle of another boot of pandod is left out.
  if (*its_epoch != epoch) return {};
  RequestWriter message;
  message.Fixed64(1, epoch);
  message.Fixed64(2, *node);
  message.Number(3, *end);
  request.Message(field, message);
  return {*end, *end / page_tokens};
}

}  // namespace pando::python
