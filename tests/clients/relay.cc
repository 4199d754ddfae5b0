#include "tests/clients/relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

namespace pando {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

int Socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

Relay::Relay(const std::string& path, std::string server)
    : server_(std::move(server)), listener_(Socket()) {
  const sockaddr_un address = AddressOf(path);
  EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  EXPECT_EQ(listen(listener_, 8), 0);
  accepting_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  Cut();
  absl::MutexLock lock(&mutex_);
  for (std::thread& thread : passing_) thread.join();
  for (const int socket : sockets_) close(socket);
  close(listener_);
}

void Relay::Cut() {
  absl::MutexLock lock(&mutex_);
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

void Relay::Mute() {
  absl::MutexLock lock(&mutex_);
  for (std::atomic<bool>& muted : muted_) muted = true;
}

void Relay::Accept() {
  int client;
  while ((client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
    const int server = Socket();
    const sockaddr_un address = AddressOf(server_);
    EXPECT_EQ(connect(server, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    absl::MutexLock lock(&mutex_);
    sockets_.insert(sockets_.end(), {client, server});
    const std::atomic<bool>* const is_muted = &muted_.emplace_back(false);
    passing_.emplace_back(
        [this, client, server] { Pass(client, server, nullptr); });
    passing_.emplace_back(
        [this, client, server, is_muted] { Pass(server, client, is_muted); });
    ++accepted_;
  }
}

void Relay::Pass(int from, int to, const std::atomic<bool>* is_muted) {
  char bytes[4096];
  ssize_t got;
  while ((got = recv(from, bytes, sizeof(bytes), 0)) > 0) {
    if (is_muted != nullptr && *is_muted) continue;
    if (send(to, bytes, got, MSG_NOSIGNAL) != got) break;
  }
  shutdown(to, SHUT_RDWR);
}

}  // namespace pando
