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

// Serializes a request from Python's values. It takes the plain ones, which
// nearly all are; with another, or one that does not fit its field, the request
// is not plain, and Python code makes it, or says what is wrong. Used with the
// GIL held; runs no Python code.
class RequestWriter {
 public:
  bool is_plain() const { return is_plain_; }

  // Fields whose zero is left out.
  void Fixed64(uint32_t field, uint64_t value);
  void Number(uint32_t field, uint64_t value);
  void Fixed64s(uint32_t field, std::span<const uint64_t> values);
  // These write a bool or an int, and return its value.
  bool Bool(uint32_t field, nanobind::handle value);
  uint32_t Uint32(uint32_t field, nanobind::handle value);
  void Int32(uint32_t field, nanobind::handle value);
  // Fields that may be unset: None leaves them out.
  void OptionalBool(uint32_t field, nanobind::handle value);
  void OptionalUint32(uint32_t field, nanobind::handle value);
  void OptionalText(uint32_t field, nanobind::handle value);
  // A field with the message that another writer holds, which has no lists.
  void Message(uint32_t field, const RequestWriter& message);
  // The values from `begin` on; `list` outlives this. At most 3, and they come
  // last in the request, in this order.
  void List(uint32_t field, const Uint32List& list, size_t begin);
  // There is a value that is not plain.
  void Refuse() { is_plain_ = false; }

  size_t size() const;
  // REQUIRES: room for size() bytes. Returns false if a value of a list does
  // not fit.
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

// A Python int from 0 to `max`; none for everything else.
std::optional<uint64_t> PlainNumber(nanobind::handle value, uint64_t max);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_WRITER_H_
