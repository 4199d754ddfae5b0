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

// A socket that does not block. The name of a host is looked up in any time.
absl::StatusOr<UniqueFd> ConnectTo(const RedisAddress& address,
                                   absl::Time deadline);

// Waits for events of poll.
absl::Status AwaitSocket(int fd, short events, absl::Time deadline);

// The deadline of a first attempt, so that there is time for another one.
absl::Time HalfwayTo(absl::Time deadline);

// Whether nothing waits to be read.
bool IsSocketQuiet(int fd);

// The bytes of a socket as they are. Owned by RedisConnection; not thread-safe.
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
