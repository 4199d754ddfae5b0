// The wire format of protobuf, as far as Pando's messages need it.
#ifndef PANDO_CLIENTS_PYTHON_NATIVE_WIRE_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_WIRE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace pando::python {

static_assert(std::endian::native == std::endian::little);

enum class WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5,
};

inline size_t VarintSize(uint64_t value) {
  return static_cast<size_t>(std::bit_width(value | 1) + 6) / 7;
}

inline std::byte* WriteVarint(uint64_t value, std::byte* out) {
  for (; value > 0x7f; value >>= 7) {
    *out++ = static_cast<std::byte>((value & 0x7f) | 0x80);
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

inline uint64_t TagOf(uint32_t number, WireType type) {
  return uint64_t{number} << 3 | static_cast<uint32_t>(type);
}

// Reads a message field by field. Each function returns none when the bytes end
// too early: then they are not a message.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool AtEnd() const { return rest_.empty(); }

  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  template <typename T>
  std::optional<T> Fixed() {
    const auto bytes = Take(sizeof(T));
    if (!bytes) return std::nullopt;
    T value;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
  }

  std::optional<std::span<const std::byte>> Bytes() {
    const std::optional<uint64_t> size = Varint();
    return size ? Take(*size) : std::nullopt;
  }

  // Skips the value of a field of this wire type. Returns false if the value is
  // malformed.
  bool Skip(WireType type) {
    switch (type) {
      case WireType::kVarint:
        return Varint().has_value();
      case WireType::kFixed64:
        return Take(8).has_value();
      case WireType::kBytes:
        return Bytes().has_value();
      case WireType::kFixed32:
        return Take(4).has_value();
    }
    return false;
  }

 private:
  std::optional<std::span<const std::byte>> Take(uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_WIRE_H_
