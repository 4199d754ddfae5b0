// The floor: the cost of a request's two calls if the cache itself cost
// nothing.
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

// Moves the same bytes as a request, without a cache: a request cannot cost
// less. A worker runs it after each request, so that both are measured under
// the same disturbances. Owned by the worker; thread-compatible.
class Floor {
 public:
  virtual ~Floor() = default;

  // Moves the bytes of one request. `sent` are the tokens that its admission
  // carried, and `inserted_pages` is the number of page ids that its finish
  // carried.
  virtual absl::Status Run(std::span<const Token> sent,
                           uint32_t inserted_pages) = 0;
};

// Returns a floor that makes two calls with messages of the same sizes to
// bench/rpc's echo_server.
absl::StatusOr<std::unique_ptr<Floor>> ConnectEchoFloor(
    const std::string& address);

// The floor for a cache in this process: a copy of the tokens.
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
