#ifndef PANDO_CLIENTS_PYTHON_NATIVE_FLAT_MESSAGE_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_FLAT_MESSAGE_H_

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pando::python {

// Gives access to the fields of a serialized message by their numbers. Only
// fields with numbers below 16 are read, others are skipped. Bytes are not
// copied.
class FlatMessage {
 public:
  // Throws nanobind::python_error if the bytes are no message. `bytes` must
  // outlive this object.
  explicit FlatMessage(std::span<const std::byte> bytes);

  // Returns the value of a number field; 0 if it is not set.
  uint64_t number(uint32_t field) const { return numbers_[field]; }
  uint32_t number32(uint32_t field) const {
    return static_cast<uint32_t>(numbers_[field]);
  }
  // Returns the bytes of a nested message; empty if it is not set.
  std::span<const std::byte> message(uint32_t field) const;
  // Returns a new numpy array of a packed list of fixed32, followed by `rest`.
  nanobind::object NewArray(uint32_t field,
                            std::span<const std::byte> rest = {}) const;
  // Returns the length of a packed list of fixed32.
  size_t CountOf(uint32_t field) const;

 private:
  std::array<uint64_t, 16> numbers_ = {};
  // A list may come in several pieces.
  std::vector<std::pair<uint32_t, std::span<const std::byte>>> pieces_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_FLAT_MESSAGE_H_
