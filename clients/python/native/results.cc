#include "clients/python/native/results.h"

#include <Python.h>

#include <algorithm>
#include <utility>

namespace pando::python {

namespace nb = nanobind;
using Bytes = std::span<const std::byte>;

ResultType::ResultType(nb::handle type,
                       std::initializer_list<const char*> fields)
    : type_(nb::borrow(type)) {
  for (const char* name : fields) {
    names_.push_back(nb::steal(PyUnicode_InternFromString(name)));
  }
}

nb::object ResultType::Make(std::initializer_list<nb::object> values) const {
  // This is object.__new__. Where it can, it keeps the values in the object
  // itself.
  static const auto make =
      reinterpret_cast<newfunc>(PyType_GetSlot(&PyBaseObject_Type, Py_tp_new));
  static PyObject* const no_arguments = PyTuple_New(0);
  nb::object made = nb::steal(make(reinterpret_cast<PyTypeObject*>(type_.ptr()),
                                   no_arguments, nullptr));
  if (!made.is_valid()) throw nb::python_error();
  auto name = names_.begin();
  for (const nb::object& value : values) {
    if (PyObject_GenericSetAttr(made.ptr(), name->ptr(), value.ptr()) != 0) {
      throw nb::python_error();
    }
    ++name;
  }
  return made;
}

Results::Results(nb::handle module)
    : namespace_(module.attr("Namespace")),
      pending_outcome_(module.attr("PendingOutcome")),
      no_pending_(pending_outcome_(0)),
      tier_(module.attr("Tier")),
      no_tier_(tier_(0)),
      match_(module.attr("Match"),
             {"matched_tokens", "first_page", "page_ids", "lock",
              "reserved_page_ids", "handle", "pending", "generation",
              "loadable_tokens", "loadable_tier"}),
      insert_(module.attr("Insert"),
              {"existing_tokens", "canonical_page_ids", "page_ids",
               "first_page", "freed_duplicates", "handle"}),
      handle_(module.attr("PrefixHandle"), {"epoch", "node", "tokens"}),
      room_(module.attr("PageRoom"), {"free", "evictable"}) {}

nb::object Results::Match(const FlatMessage& answer, nb::object lock,
                          size_t first_page, nb::object handle,
                          const nb::object& generation) const {
  const uint64_t pending = answer.number(6);
  const uint64_t tier = answer.number(10);
  return match_.Make(
      {nb::int_(answer.number32(1)), nb::int_(first_page), answer.NewArray(2),
       std::move(lock), answer.NewArray(4), std::move(handle),
       pending == 0 ? no_pending_ : pending_outcome_(pending), generation,
       nb::int_(answer.number32(9)), tier == 0 ? no_tier_ : tier_(tier)});
}

nb::object Results::Insert(const FlatMessage& answer, size_t first_token,
                           size_t first_page, Bytes own,
                           nb::object handle) const {
  const size_t canonical =
      std::min(answer.CountOf(2) * sizeof(uint32_t), own.size());
  return insert_.Make(
      {nb::int_(first_token + answer.number32(1)), answer.NewArray(2),
       answer.NewArray(2, own.subspan(canonical)), nb::int_(first_page),
       nb::int_(answer.number32(3)), std::move(handle)});
}

nb::object Results::Handle(Bytes message) const {
  if (message.empty()) return nb::none();
  const FlatMessage handle(message);
  return handle_.Make({nb::int_(handle.number(1)), nb::int_(handle.number(2)),
                       nb::int_(handle.number32(3))});
}

nb::object Results::Room(uint32_t free, uint32_t evictable) const {
  return room_.Make({nb::int_(free), nb::int_(evictable)});
}

}  // namespace pando::python
