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

// The bytes of a connection. Deadlines are of MonotonicNow; after an error it
// is of no use any more. Used by one thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Reads one byte at least; an error if there will be none.
  virtual absl::StatusOr<size_t> Read(std::span<std::byte> into,
                                      absl::Time deadline) = 0;
  // Writes all of them.
  virtual absl::Status Write(std::vector<iovec> parts, absl::Time deadline) = 0;
  // Whether nothing has come that was not read, nor its end.
  virtual bool IsQuiet() const = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_BYTE_STREAM_H_
