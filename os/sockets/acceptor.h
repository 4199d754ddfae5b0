#ifndef PANDO_OS_SOCKETS_ACCEPTOR_H_
#define PANDO_OS_SOCKETS_ACCEPTOR_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// Accepts connections in place of gRPC, because gRPC does not say who connects,
// stops accepting for good once the descriptors have run out, and cannot treat
// connections differently. It has a thread of its own, which destruction stops.
// Owned by RpcServer.
class Acceptor {
 public:
  // A listening, non-blocking socket, which outlives the acceptor.
  struct Source {
    int fd = -1;
    std::string name;  // for the log
    // Called with each new connection, on the acceptor's thread.
    std::function<void(UniqueFd)> on_connected;
  };

  // Starts the thread, which accepts from all `sources`.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      std::vector<Source> sources);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<Source> sources, UniqueFd stop);

  void Run();
  // Returns false when no descriptor is left for the next connection.
  static bool AcceptAll(const Source& source);

  const std::vector<Source> sources_;
  const UniqueFd stop_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_ACCEPTOR_H_
