#ifndef PANDO_CORE_MATCH_ALLOCATION_H_
#define PANDO_CORE_MATCH_ALLOCATION_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/parts/stepped_work.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// Implements PrefixCache::Allocate. Each step reserves some pages and evicts as
// needed for them, so no other call can take the room that it made. Between the
// steps other calls may take the rest of the room; if then fewer pages than
// min_pages can be had, it gives back all pages and fails. Only in this case
// has a failed call evicted anything.
class Allocation final : public SteppedWork {
 public:
  // `quota_class` is that of the request's namespace.
  Allocation(const AllocateRequest& request, uint32_t quota_class,
             uint32_t capacity_pages);

  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override {
    return Operation::kAllocate;
  }
  // Gives back the reserved pages.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<AllocateResult> Take();

 private:
  enum class Stage { kBegin, kReserve, kGiveBack };

  absl::Status Begin(CacheParts& parts, Session& session);
  bool Reserve(CacheParts& parts, Session& session);
  bool Finish(CacheParts& parts, Session& session);

  const SessionId session_;
  const uint32_t quota_class_;
  const uint32_t most_;
  const uint32_t least_;
  const RequestId request_id_;
  Stage stage_ = Stage::kBegin;
  uint32_t wanted_ = 0;
  absl::Status status_;
  AllocateResult result_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_ALLOCATION_H_
