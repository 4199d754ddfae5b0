// What a request's two calls would cost if the cache cost nothing.
#ifndef PANDO_REPLAY_FLOOR_H_
#define PANDO_REPLAY_FLOOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/trace.h"

namespace pando::replay {

// Runs beside the calls of a worker, after each request, so that what disturbs
// the one disturbs the other. Owned by the worker; thread-compatible.
class Floor {
 public:
  virtual ~Floor() = default;

  // `sent`: the tokens that the admission carried; `inserted_pages`: the page
  // ids that the finish did.
  virtual absl::Status Run(std::span<const Token> sent,
                           uint32_t inserted_pages) = 0;
};

// Two echoes of the same message sizes, by bench/rpc's echo_server.
absl::StatusOr<std::unique_ptr<Floor>> ConnectEchoFloor(
    const std::string& address);

// In one process: a copy of the tokens.
class CopyFloor : public Floor {
 public:
  absl::Status Run(std::span<const Token> sent, uint32_t) override {
    copy_.assign(sent.begin(), sent.end());
    return absl::OkStatus();
  }

 private:
  std::vector<Token> copy_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_FLOOR_H_
