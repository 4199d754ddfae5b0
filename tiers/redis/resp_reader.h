#ifndef PANDO_TIERS_REDIS_RESP_READER_H_
#define PANDO_TIERS_REDIS_RESP_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tiers/redis/byte_stream.h"

namespace pando {

// The reply of a server to a command.
struct RespReply {
  enum class Kind {
    kNull,         // there is nothing
    kText,         // in `text`
    kError,        // what it says is in `text`
    kInteger,      // in `integer`
    kArray,        // of `elements`
    kValue,        // was read to where it was wanted
    kOtherLength,  // of a value, which was thrown away
  };

  Kind kind = Kind::kNull;
  std::string text;
  int64_t integer = 0;
  std::vector<RespReply> elements;
};

// Reads replies in RESP 2 from a server that is trusted with nothing: an error
// means that what follows cannot be understood, or does not come, and that the
// connection must be closed. Owned by RedisConnection; not thread-safe.
class RespReader {
 public:
  // Longer lines are refused: errors and numbers.
  static constexpr size_t kMaxLine = 4096;
  // The limits of a reply, for all its texts and elements together: of what a
  // command with a key is answered, and of any other.
  static constexpr size_t kMaxShortReply = kMaxLine;
  static constexpr size_t kMaxReply = size_t{4} << 20;
  // An element of an array counts for so much, beside its text.
  static constexpr size_t kElementBytes = 128;
  // A value that is longer than what was asked for by more than this closes
  // the connection; others are thrown away.
  static constexpr size_t kMaxExcess = size_t{64} << 10;
  static constexpr int kMaxDepth = 6;  // of arrays in arrays

  // `stream` outlives this.
  explicit RespReader(ByteStream* stream);

  absl::StatusOr<RespReply> Read(size_t max_bytes, absl::Time deadline);
  // A text goes to `value`, which it must fill.
  absl::StatusOr<RespReply> ReadInto(std::span<std::byte> value,
                                     absl::Time deadline);
  // Whether nothing was read that is not used yet.
  bool is_empty() const { return begin_ == end_; }

 private:
  struct Header {
    char kind;
    std::string_view line;  // until more is read
  };

  absl::StatusOr<Header> ReadHeader(absl::Time deadline);
  absl::StatusOr<RespReply> ReadReply(const Header& header, int depth,
                                      size_t& left, absl::Time deadline);
  absl::StatusOr<RespReply> ReadArray(int64_t size, int depth, size_t& left,
                                      absl::Time deadline);
  absl::Status ReadBytes(std::span<std::byte> into, absl::Time deadline);
  absl::Status SkipBytes(size_t bytes, absl::Time deadline);
  absl::Status ReadLineEnd(absl::Time deadline);
  // Reads more into the buffer, which has room.
  absl::Status Fill(absl::Time deadline);
  size_t buffered() const { return end_ - begin_; }

  ByteStream* const stream_;
  // The bytes that were read and not used yet are [begin_, end_).
  const std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_RESP_READER_H_
