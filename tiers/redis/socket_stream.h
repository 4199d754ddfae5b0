#ifndef PANDO_TIERS_REDIS_SOCKET_STREAM_H_
#define PANDO_TIERS_REDIS_SOCKET_STREAM_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "tiers/redis/byte_stream.h"
#include "tiers/redis/redis_address.h"

namespace pando {

// Connects to a server. Returns a socket that does not block. The deadline does
// not limit the lookup of the host's name.
absl::StatusOr<UniqueFd> ConnectTo(const RedisAddress& address,
                                   absl::Time deadline);

// Waits until one of `events` (of poll) has come.
absl::Status AwaitSocket(int fd, short events, absl::Time deadline);

// Returns the time halfway from now to `deadline`: the deadline of a first
// attempt that leaves time for another.
absl::Time HalfwayTo(absl::Time deadline);

// Returns whether nothing waits to be read, not even the end of the connection.
bool IsSocketQuiet(int fd);

// A connection that is not encrypted. Owned by RedisConnection; not
// thread-safe.
class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(UniqueFd fd) : fd_(std::move(fd)) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> into,
                              absl::Time deadline) override;
  absl::Status Write(std::vector<iovec> parts, absl::Time deadline) override;
  bool IsQuiet() const override { return IsSocketQuiet(fd_.get()); }

 private:
  const UniqueFd fd_;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_SOCKET_STREAM_H_
