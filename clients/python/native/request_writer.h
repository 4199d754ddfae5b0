#ifndef PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_WRITER_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_WRITER_H_

#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clients/python/native/uint32_list.h"

namespace pando::python {

// Serializes a request from Python's values. It accepts only plain values,
// which nearly all are: bools, text, lists of Uint32List, and ints (exactly of
// type int) that are not negative and fit their fields. With any other value
// the request is not plain; then Python code makes the request, or says what is
// wrong. Used with the GIL held; runs no Python code.
class RequestWriter {
 public:
  bool is_plain() const { return is_plain_; }

  // These leave out a field whose value is zero.
  void Fixed64(uint32_t field, uint64_t value);
  void Number(uint32_t field, uint64_t value);
  void Fixed64s(uint32_t field, std::span<const uint64_t> values);
  // These write a bool or an int. Bool and Uint32 return its value.
  bool Bool(uint32_t field, nanobind::handle value);
  uint32_t Uint32(uint32_t field, nanobind::handle value);
  void Int32(uint32_t field, nanobind::handle value);
  // These write a field that may be unset: None leaves it out.
  void OptionalBool(uint32_t field, nanobind::handle value);
  void OptionalUint32(uint32_t field, nanobind::handle value);
  void OptionalText(uint32_t field, nanobind::handle value);
  // Writes a field with the message that another writer holds. REQUIRES: that
  // message has no lists.
  void Message(uint32_t field, const RequestWriter& message);
  // Writes a packed list: the values of `list` from index `begin` on. `list`
  // must outlive this object. A request has at most 3 lists; they come last in
  // it, in the order of the calls.
  void List(uint32_t field, const Uint32List& list, size_t begin);
  // Says that a value is not plain.
  void Refuse() { is_plain_ = false; }

  size_t size() const;
  // Writes the request. Returns false if a value of a list does not fit.
  // REQUIRES: `out` has room for size() bytes.
  bool Write(std::byte* out) const;

 private:
  struct ListField {
    uint32_t field;
    const Uint32List* list;
    size_t begin;

    size_t bytes() const { return (list->size() - begin) * sizeof(uint32_t); }
  };

  void Varint(uint64_t value);
  void Bytes(uint32_t field, std::string_view bytes);

  std::string head_;  // all but the lists
  std::array<ListField, 3> lists_;
  size_t list_count_ = 0;
  bool is_plain_ = true;
};

// Returns the value of a Python int from 0 to `max`; none for any other object.
std::optional<uint64_t> PlainNumber(nanobind::handle value, uint64_t max);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_WRITER_H_
