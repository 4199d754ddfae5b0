#include "clients/cpp/src/memory_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace pando {
inline namespace client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire order is little endian");

constexpr std::array<char, 4> kMagic = {'P', 'N', 'D', 'O'};
constexpr uint32_t kVersion = 1;
// The most descriptors that the server sends, as many as fit into one message.
constexpr uint32_t kMaxDescriptors = 250;

// The values of Header::status.
enum : uint32_t { kAccepted = 0, kCannotExport = 2 };

// Sent by the server; the bytes of each descriptor follow as uint64.
struct Header {
  std::array<char, 4> magic;
  uint32_t version;
  uint32_t status;
  uint32_t count;
};
static_assert(sizeof(Header) == 16);

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path,
                                   absl::Duration timeout) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_socket: path of ", path.size(),
                     " bytes, limit 1..", sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());

  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return absl::ErrnoToStatus(errno, "socket");
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("connect to ", path));
  }
  return fd;
}

absl::Status SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return absl::ErrnoToStatus(errno, "send to memory socket");
    bytes.remove_prefix(sent);
  }
  return absl::OkStatus();
}

void TakeDescriptors(msghdr& message, std::vector<UniqueFd>* out) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      out->emplace_back(fd);
    }
  }
}

// Fills `bytes`, and keeps the descriptors that come along.
absl::Status ReceiveAll(int fd, std::span<std::byte> bytes,
                        std::vector<UniqueFd>* descriptors) {
  while (!bytes.empty()) {
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    iovec target = {bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &target;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::ErrnoToStatus(errno, "receive from memory socket");
    }
    TakeDescriptors(message, descriptors);
    if (got == 0) {
      return absl::UnavailableError("memory socket closed by the server");
    }
    bytes = bytes.subspan(got);
  }
  return absl::OkStatus();
}

absl::Status Check(const Header& header) {
  if (header.magic != kMagic) {
    return absl::InternalError("memory socket: not a pando server");
  }
  if (header.version != kVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "memory socket: version ", header.version, ", need ", kVersion));
  }
  if (header.status == kCannotExport) {
    return absl::UnavailableError(
        "memory socket: the server could not export the memory");
  }
  if (header.status != kAccepted) {
    return absl::PermissionDeniedError(absl::StrCat(
        "memory socket: token refused with status ", header.status));
  }
  if (header.count == 0 || header.count > kMaxDescriptors) {
    return absl::InternalError(absl::StrCat("memory socket: ", header.count,
                                            " descriptors, limit 1..",
                                            kMaxDescriptors));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReceivedMemory> ReceiveMemory(const std::string& path,
                                             std::string_view token,
                                             absl::Duration timeout) {
  ASSIGN_OR_RETURN(const UniqueFd socket, ConnectTo(path, timeout));
  RETURN_IF_ERROR(SendAll(socket.get(), token));

  ReceivedMemory memory;
  Header header;
  RETURN_IF_ERROR(ReceiveAll(socket.get(),
                             std::as_writable_bytes(std::span(&header, 1)),
                             &memory.descriptors));
  RETURN_IF_ERROR(Check(header));

  memory.sizes.resize(header.count);
  RETURN_IF_ERROR(ReceiveAll(socket.get(),
                             std::as_writable_bytes(std::span(memory.sizes)),
                             &memory.descriptors));
  if (memory.descriptors.size() != header.count) {
    return absl::InternalError(
        absl::StrCat("memory socket: ", memory.descriptors.size(),
                     " descriptors, said ", header.count));
  }
  return memory;
}

}  // namespace client
}  // namespace pando
