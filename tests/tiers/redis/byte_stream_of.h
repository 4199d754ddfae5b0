#ifndef PANDO_TESTS_TIERS_REDIS_BYTE_STREAM_OF_H_
#define PANDO_TESTS_TIERS_REDIS_BYTE_STREAM_OF_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tiers/redis/byte_stream.h"

namespace pando {

// A connection to a server that sends a text in parts of `part_bytes` bytes and
// then closes the connection.
class ByteStreamOf final : public ByteStream {
 public:
  ByteStreamOf(std::string text, size_t part_bytes)
      : text_(std::move(text)), part_bytes_(part_bytes) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> into, absl::Time) override {
    const size_t bytes =
        std::min({part_bytes_, into.size(), text_.size() - read_});
    if (bytes == 0) return absl::UnavailableError("closed");
    std::memcpy(into.data(), text_.data() + read_, bytes);
    read_ += bytes;
    return bytes;
  }
  absl::Status Write(std::vector<iovec>, absl::Time) override {
    return absl::OkStatus();
  }
  bool IsQuiet() const override { return read_ == text_.size(); }

 private:
  const std::string text_;
  const size_t part_bytes_;
  size_t read_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_REDIS_BYTE_STREAM_OF_H_
