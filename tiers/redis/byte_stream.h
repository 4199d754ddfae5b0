#ifndef PANDO_TIERS_REDIS_BYTE_STREAM_H_
#define PANDO_TIERS_REDIS_BYTE_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pando {

// A connection that carries bytes. Deadlines are of MonotonicNow; a call that
// would wait past its deadline returns DEADLINE_EXCEEDED. After an error the
// connection must not be used any more. For one thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Reads at least one byte, and returns how many. Returns an error if the peer
  // has closed the connection.
  virtual absl::StatusOr<size_t> Read(std::span<std::byte> into,
                                      absl::Time deadline) = 0;
  // Writes all bytes of all parts.
  virtual absl::Status Write(std::vector<iovec> parts, absl::Time deadline) = 0;
  // Returns whether all bytes that came have been read, and the peer has not
  // closed the connection.
  virtual bool IsQuiet() const = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_BYTE_STREAM_H_
