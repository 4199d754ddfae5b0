#ifndef PANDO_CORE_MATCH_UNLOCKING_H_
#define PANDO_CORE_MATCH_UNLOCKING_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/parts/stepped_work.h"
#include "core/sessions/session_table.h"

namespace pando {

// Implements PrefixCache::Unlock. The first step marks all locks as being
// released, or none if one is unknown; no call finds them from then on. Then
// each step releases some.
class Unlocking final : public SteppedWork {
 public:
  Unlocking(SessionId session, std::vector<LockId> locks, RequestId request_id)
      : session_(session), locks_(std::move(locks)), request_id_(request_id) {}

  void Prepare() override;
  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override {
    return Operation::kUnlock;
  }
  // If it has begun, it goes on and releases all locks.
  bool Abandon() override { return has_begun_; }
  // REQUIRES: the last Step returned true.
  const absl::Status& status() const { return status_; }

 private:
  // Returns whether there are locks to release.
  bool Begin(CacheParts& parts, Session& session);
  // Returns whether all are released.
  bool ReleaseSome(CacheParts& parts, const Session& session);

  SessionId session_;
  std::vector<LockId> locks_;
  size_t released_ = 0;  // of the locks, from the front
  RequestId request_id_;
  bool has_begun_ = false;
  absl::Status status_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_UNLOCKING_H_
