#include "keeper/notify_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace pando::keeper {
namespace {

// The most descriptors that the kernel passes with one message.
constexpr size_t kMostDescriptors = 253;

// Returns the address that a variable NOTIFY_SOCKET of this text stands for.
// Its size is 0 if it stands for none.
std::pair<sockaddr_un, socklen_t> AddressOf(const std::string& text) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (text.empty() || text.size() >= sizeof(address.sun_path)) {
    return {address, 0};
  }
  text.copy(address.sun_path, text.size());
  if (text.front() == '@') address.sun_path[0] = '\0';
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                          text.size())};
}

// Takes the descriptors out of a message, and returns who sent it.
pid_t Open(msghdr& message, std::vector<UniqueFd>& descriptors) {
  pid_t sender = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials;
      std::memcpy(&credentials, CMSG_DATA(part), sizeof(credentials));
      sender = credentials.pid;
    } else if (part->cmsg_type == SCM_RIGHTS) {
      const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(fd);
      }
    }
  }
  return sender;
}

}  // namespace

NotifySocket::NotifySocket() {
  const char* const manager = std::getenv("NOTIFY_SOCKET");
  if (manager != nullptr) service_manager_ = manager;
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  // The address has no name, so the kernel chooses one.
  socklen_t size = sizeof(sa_family_t);
  auto* const bound = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() ||
      setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
      bind(fd.get(), bound, size) != 0) {
    return;
  }
  size = sizeof(address);
  if (getsockname(fd.get(), bound, &size) != 0) return;
  // The name begins with a zero byte, which is written as @.
  address_ = "@" + std::string(address.sun_path + 1,
                               size - offsetof(sockaddr_un, sun_path) - 1);
  fd_ = std::move(fd);
}

void NotifySocket::Receive(pid_t from, DescriptorStore& store,
                           LifeSigns& life) {
  while (true) {
    std::array<char, 4096> text;
    alignas(cmsghdr)
        std::array<char, CMSG_SPACE(sizeof(ucred)) +
                             CMSG_SPACE(kMostDescriptors * sizeof(int))>
            control;
    iovec body = {text.data(), text.size()};
    msghdr message = {};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return;
    std::vector<UniqueFd> descriptors;
    if (Open(message, descriptors) != from) continue;
    const std::string_view said(text.data(), static_cast<size_t>(size));
    life.Take(said, LifeSigns::Clock::now());
    if (!store.Take(said, std::move(descriptors))) TellServiceManager(said);
  }
}

void NotifySocket::TellServiceManager(std::string_view message) const {
  const auto [address, size] = AddressOf(service_manager_);
  if (size == 0) return;
  sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace pando::keeper
