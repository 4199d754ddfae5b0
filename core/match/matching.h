#ifndef PANDO_CORE_MATCH_MATCHING_H_
#define PANDO_CORE_MATCH_MATCHING_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/match/match.h"
#include "core/parts/stepped_work.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// PrefixCache::Match. The first step finds and locks the prefix, and reserves
// the first pages, for which others wait from then on; more steps reserve the
// rest. Others may take the room meanwhile; then it gives back what it has. The
// last step, if pages were reserved, lets the lock hold the prompt, which is
// copied without the mutex.
class Matching final : public SteppedWork {
 public:
  // The memory that the request refers to is there until the end, or Abandon.
  Matching(const MatchRequest& request, uint32_t page_tokens,
           uint32_t capacity_pages);

  void Prepare() override;
  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override;
  // Gives back what was locked and reserved.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<MatchResult> Take();

 private:
  enum class Stage { kBegin, kReserve, kHold, kUnlock, kGiveBack };

  bool Begin(CacheParts& parts);
  absl::Status Admit(CacheParts& parts, Session*& session);
  bool Reserve(CacheParts& parts, Session& session);
  bool FinishReserving(CacheParts& parts, Session& session);
  bool Unlock(CacheParts& parts, Session& session);

  const MatchRequest request_;
  Stage stage_ = Stage::kBegin;
  MatchedReservation reservation_;
  HeldPrompt prompt_;
  absl::Status status_;
  MatchResult result_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_MATCHING_H_
