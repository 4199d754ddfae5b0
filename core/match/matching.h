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

// Implements PrefixCache::Match. The first step finds and locks the prefix,
// reserves the first pages, and marks the page after the match as pending. More
// steps reserve the other pages. If other calls take the room meanwhile, it
// releases the lock, gives the pages back and fails. If pages were reserved, a
// last step gives the prompt, which is copied outside the mutex, to the lock.
class Matching final : public SteppedWork {
 public:
  // The memory that the request refers to must live until the last step or
  // Abandon. `arena` is where the prompt is copied to, see SegmentRef::Copy.
  Matching(const MatchRequest& request, uint32_t page_tokens,
           uint32_t capacity_pages, SegmentArena* arena);

  void Prepare() override;
  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override;
  // Gives back the lock and the reserved pages, or only the room for the prompt
  // if the match has its answer.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<MatchResult> Take();

 private:
  enum class Stage { kBegin, kReserve, kHold, kForget, kUnlock, kGiveBack };

  bool Begin(CacheParts& parts);
  absl::Status Admit(CacheParts& parts, Session*& session);
  bool Reserve(CacheParts& parts, Session& session);
  bool FinishReserving(CacheParts& parts, Session& session);
  // The lock will hold no prompt, so none counts in the session's account.
  void ForgetPrompt(CacheParts& parts, const Session& session);
  bool Unlock(CacheParts& parts, Session& session);

  const MatchRequest request_;
  SegmentArena* const arena_;
  Stage stage_ = Stage::kBegin;
  MatchedReservation reservation_;
  HeldPrompt prompt_;
  absl::Status status_;
  MatchResult result_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_MATCHING_H_
