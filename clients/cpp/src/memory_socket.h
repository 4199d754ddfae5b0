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

// The memory that the server sends for a token: the shards of the pool, the
// block memory, or the parts of a lane. Each has a descriptor, and a number of
// bytes to map.
struct ReceivedMemory {
  std::vector<UniqueFd> descriptors;
  std::vector<uint64_t> sizes;
};

// Connects to the Unix stream socket at `path`, shows the token and receives
// the memory. `timeout` limits each step.
absl::StatusOr<ReceivedMemory> ReceiveMemory(const std::string& path,
                                             std::string_view token,
                                             absl::Duration timeout);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_MEMORY_SOCKET_H_
