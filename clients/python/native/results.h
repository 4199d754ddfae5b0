#ifndef PANDO_CLIENTS_PYTHON_NATIVE_RESULTS_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_RESULTS_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "clients/python/native/flat_message.h"

namespace pando::python {

// A frozen dataclass of pando_kv.results, made without its __init__.
class ResultType {
 public:
  // `fields` are the names of all its fields.
  ResultType(nanobind::handle type, std::initializer_list<const char*> fields);

  nanobind::handle type() const { return type_; }
  // Makes an object. REQUIRES: there is a value for each field.
  nanobind::object Make(std::initializer_list<nanobind::object> values) const;

 private:
  nanobind::object type_;
  std::vector<nanobind::object> names_;
};

// Makes the results of pando_kv.results from answers. Used with the GIL held.
class Results {
 public:
  // `module` is pando_kv.results.
  explicit Results(nanobind::handle module);

  nanobind::handle namespace_type() const { return namespace_; }
  nanobind::handle handle_type() const { return handle_.type(); }

  // `answer` is a MatchPrefixResponse.
  nanobind::object Match(const FlatMessage& answer, nanobind::object lock,
                         size_t first_page, nanobind::object handle,
                         const nanobind::object& generation) const;
  // `answer` is an InsertResponse; the insert began at this token and page.
  // `own` are the page ids that were sent.
  nanobind::object Insert(const FlatMessage& answer, size_t first_token,
                          size_t first_page, std::span<const std::byte> own,
                          nanobind::object handle) const;
  // Makes a handle. Returns None for an empty message.
  nanobind::object Handle(std::span<const std::byte> message) const;
  nanobind::object Room(uint32_t free, uint32_t evictable) const;

 private:
  const nanobind::object namespace_;
  const nanobind::object pending_outcome_;
  const nanobind::object no_pending_;
  const nanobind::object tier_;
  const nanobind::object no_tier_;
  const ResultType match_;
  const ResultType insert_;
  const ResultType handle_;
  const ResultType room_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_RESULTS_H_
