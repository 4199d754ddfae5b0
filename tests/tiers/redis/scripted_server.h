#ifndef PANDO_TESTS_TIERS_REDIS_SCRIPTED_SERVER_H_
#define PANDO_TESTS_TIERS_REDIS_SCRIPTED_SERVER_H_

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "tiers/redis/redis_address.h"
#include "tiers/redis/socket_stream.h"

namespace pando {

// A server on a port of this machine that answers commands as a test says.
// Tests use this server for situations that a real server rarely shows: a
// cluster moves slots, or a connection breaks off. Owned by a test;
// thread-safe.
class ScriptedServer {
 public:
  // Returns the reply to a command. The words of the command are separated by
  // spaces. The reply kClose closes the connection.
  using Answer = std::function<std::string(const std::string& command)>;
  static constexpr char kClose[] = "close";

  explicit ScriptedServer(Answer answer);
  ~ScriptedServer();

  const RedisAddress& address() const { return address_; }
  // The number of connections that were opened so far.
  size_t connections() const;
  // All commands that were received so far, in their order.
  std::vector<std::string> commands() const;
  // Closes the open connections, and goes on listening.
  void CloseAll();

 private:
  struct Connection {
    explicit Connection(UniqueFd socket)
        : fd(socket.get()), stream(std::move(socket)) {}

    const int fd;  // owned by `stream`
    SocketStream stream;
    std::thread thread;
  };

  void Listen();
  void Serve(SocketStream& stream, int fd);

  const Answer answer_;
  const UniqueFd listener_;
  RedisAddress address_;
  mutable absl::Mutex mutex_;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> commands_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_REDIS_SCRIPTED_SERVER_H_
