// The client's side of the handshake on the memory socket.
#ifndef PANDO_CLIENTS_CPP_SRC_MEMORY_SOCKET_H_
#define PANDO_CLIENTS_CPP_SRC_MEMORY_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace pando {
inline namespace client {

// What the memory socket gives for a token: a descriptor for each shard.
struct ReceivedShards {
  std::vector<UniqueFd> descriptors;
  std::vector<uint64_t> sizes;
};

// Connects to the Unix stream socket at `path`, shows the token and receives
// the shards. `timeout` bounds each step of it.
absl::StatusOr<ReceivedShards> ReceiveShards(const std::string& path,
                                             std::string_view token,
                                             absl::Duration timeout);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_MEMORY_SOCKET_H_
