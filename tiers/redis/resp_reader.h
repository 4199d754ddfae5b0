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
    kNull,         // there is no value
    kText,         // in `text`
    kError,        // what it says is in `text`
    kInteger,      // in `integer`
    kArray,        // of `elements`
    kValue,        // was read into the caller's buffer
    kOtherLength,  // a value of another length, which was thrown away
  };

  Kind kind = Kind::kNull;
  std::string text;
  int64_t integer = 0;
  std::vector<RespReply> elements;
};

// Reads replies in RESP 2 from a server that is not trusted. After an error of
// a method the rest of the stream cannot be understood, and the connection must
// be closed. Owned by RedisConnection; not thread-safe.
class RespReader {
 public:
  // The longest line, such as an error or a number; longer ones are refused.
  static constexpr size_t kMaxLine = 4096;
  // The limits of a reply in bytes, for all its texts and elements together:
  // kMaxShortReply for commands with a key, kMaxReply for others.
  static constexpr size_t kMaxShortReply = kMaxLine;
  static constexpr size_t kMaxReply = size_t{4} << 20;
  // An element of an array counts as so many bytes, in addition to its text.
  static constexpr size_t kElementBytes = 128;
  // A value of the wrong length is thrown away. If it is more than this many
  // bytes too long, ReadInto fails instead, so that the connection is closed.
  static constexpr size_t kMaxExcess = size_t{64} << 10;
  static constexpr int kMaxDepth = 6;  // the deepest nesting of arrays

  // `stream` must outlive this object.
  explicit RespReader(ByteStream* stream);

  // Reads a reply of at most `max_bytes` bytes.
  absl::StatusOr<RespReply> Read(size_t max_bytes, absl::Time deadline);
  // Reads a reply whose text goes to `value`, which it must fill exactly: the
  // kind of the reply is then kValue. A text of another length is thrown away
  // (kOtherLength). Other replies are read as by Read(kMaxShortReply).
  absl::StatusOr<RespReply> ReadInto(std::span<std::byte> value,
                                     absl::Time deadline);
  // Returns whether all bytes that were read belong to replies that were
  // returned.
  bool is_empty() const { return begin_ == end_; }

 private:
  struct Header {
    char kind;
    std::string_view line;  // valid until more is read
  };

  absl::StatusOr<Header> ReadHeader(absl::Time deadline);
  absl::StatusOr<RespReply> ReadReply(const Header& header, int depth,
                                      size_t& left, absl::Time deadline);
  absl::StatusOr<RespReply> ReadArray(int64_t size, int depth, size_t& left,
                                      absl::Time deadline);
  absl::Status ReadBytes(std::span<std::byte> into, absl::Time deadline);
  absl::Status SkipBytes(size_t bytes, absl::Time deadline);
  absl::Status ReadLineEnd(absl::Time deadline);
  // Reads more bytes into the buffer. REQUIRES: the buffer has room.
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
