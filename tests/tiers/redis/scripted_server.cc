#include "tests/tiers/redis/scripted_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "gtest/gtest.h"
#include "tiers/redis/resp_reader.h"

namespace pando {
namespace {

sockaddr* Generic(sockaddr_in& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

std::string WordsOf(const RespReply& command) {
  std::string words;
  for (const RespReply& word : command.elements) {
    if (!words.empty()) words += ' ';
    words += word.text;
  }
  return words;
}

}  // namespace

ScriptedServer::ScriptedServer(Answer answer)
    : answer_(std::move(answer)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener_.get(), Generic(address), length), 0);
  EXPECT_EQ(listen(listener_.get(), SOMAXCONN), 0);
  EXPECT_EQ(getsockname(listener_.get(), Generic(address), &length), 0);
  address_ = {.host = "127.0.0.1", .port = ntohs(address.sin_port)};
  thread_ = std::thread(&ScriptedServer::Listen, this);
}

ScriptedServer::~ScriptedServer() {
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
  CloseAll();
  std::list<Connection> served;
  {
    absl::MutexLock hold(&mutex_);
    served.swap(connections_);
  }
  for (Connection& connection : served) connection.thread.join();
}

void ScriptedServer::Listen() {
  while (true) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return;
    absl::MutexLock hold(&mutex_);
    Connection& connection = connections_.emplace_back(std::move(socket));
    connection.thread = std::thread(
        [this, &connection] { Serve(connection.stream, connection.fd); });
  }
}

void ScriptedServer::Serve(SocketStream& stream, int fd) {
  RespReader commands(&stream);
  while (true) {
    const absl::StatusOr<RespReply> command =
        commands.Read(RespReader::kMaxReply, absl::InfiniteFuture());
    if (!command.ok()) break;
    const std::string words = WordsOf(*command);
    {
      absl::MutexLock hold(&mutex_);
      commands_.push_back(words);
    }
    std::string answer = answer_(words);
    if (answer == kClose) break;
    const iovec part = {answer.data(), answer.size()};
    if (!stream.Write({part}, absl::InfiniteFuture()).ok()) break;
  }
  shutdown(fd, SHUT_RDWR);
}

size_t ScriptedServer::connections() const {
  absl::MutexLock hold(&mutex_);
  return connections_.size();
}

std::vector<std::string> ScriptedServer::commands() const {
  absl::MutexLock hold(&mutex_);
  return commands_;
}

void ScriptedServer::CloseAll() {
  absl::MutexLock hold(&mutex_);
  for (const Connection& connection : connections_) {
    shutdown(connection.fd, SHUT_RDWR);
  }
}

}  // namespace pando
