// Sends and receives messages of known sizes, with descriptors, over a
// connected Unix socket.
#ifndef PANDO_MOVER_MESSAGE_SOCKET_H_
#define PANDO_MOVER_MESSAGE_SOCKET_H_

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando::mover {

// Sends a message. Does not wait: returns UNAVAILABLE if the peer is gone, or
// if the socket has no room for the whole message.
absl::Status SendBytes(int socket, std::span<const std::byte> message,
                       std::span<const UniqueFd> descriptors);
// Waits until a whole message has come, and returns the descriptors that came
// with it. Returns UNAVAILABLE if the peer is gone, or the timeout of the
// socket has passed.
absl::StatusOr<std::vector<UniqueFd>> ReceiveBytes(
    int socket, std::span<std::byte> message);

template <typename Message>
absl::Status Send(int socket, const Message& message,
                  std::span<const UniqueFd> descriptors = {}) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return SendBytes(socket, std::as_bytes(std::span(&message, 1)), descriptors);
}

template <typename Message>
absl::StatusOr<std::vector<UniqueFd>> Receive(int socket, Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return ReceiveBytes(socket, std::as_writable_bytes(std::span(&message, 1)));
}

}  // namespace pando::mover

#endif  // PANDO_MOVER_MESSAGE_SOCKET_H_
