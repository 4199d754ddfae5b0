#include "mover/message_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "mover/messages.h"

namespace pando::mover {
namespace {

// One descriptor for each shard, and one for the transfer memory.
constexpr size_t kMaxDescriptors = kMaxShards + 1;
constexpr size_t kControlBytes = CMSG_SPACE(kMaxDescriptors * sizeof(int));

absl::Status Unavailable(const char* call) {
  return absl::UnavailableError(
      absl::StrFormat("%s: %s", call, std::strerror(errno)));
}

void TakeDescriptors(msghdr& header, std::vector<UniqueFd>& taken) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      taken.emplace_back(fd);
    }
  }
}

// Receives a part of a message and its descriptors. Returns how many bytes
// came.
absl::StatusOr<size_t> ReceiveSome(int socket, std::span<std::byte> bytes,
                                   std::vector<UniqueFd>& descriptors) {
  alignas(cmsghdr) char control[kControlBytes];
  iovec part = {bytes.data(), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return Unavailable("recvmsg");
  if (received == 0) return absl::UnavailableError("the connection is closed");
  TakeDescriptors(header, descriptors);
  return static_cast<size_t>(received);
}

}  // namespace

absl::Status SendBytes(int socket, std::span<const std::byte> message,
                       std::span<const UniqueFd> descriptors) {
  iovec bytes = {const_cast<std::byte*>(message.data()), message.size()};
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    for (size_t i = 0; i < descriptors.size(); ++i) {
      const int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return Unavailable("sendmsg");
  if (static_cast<size_t>(sent) == message.size()) return absl::OkStatus();
  return absl::UnavailableError("the peer takes no messages");
}

absl::StatusOr<std::vector<UniqueFd>> ReceiveBytes(
    int socket, std::span<std::byte> message) {
  std::vector<UniqueFd> descriptors;
  while (!message.empty()) {
    const absl::StatusOr<size_t> received =
        ReceiveSome(socket, message, descriptors);
    if (!received.ok()) return received.status();
    message = message.subspan(*received);
  }
  return descriptors;
}

}  // namespace pando::mover
