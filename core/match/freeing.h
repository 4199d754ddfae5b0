#ifndef PANDO_CORE_MATCH_FREEING_H_
#define PANDO_CORE_MATCH_FREEING_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/match/page_steps.h"
#include "core/parts/stepped_work.h"
#include "core/sessions/session_table.h"

namespace pando {

// Implements PrefixCache::Free: first checks all pages, then frees them, some
// in each step.
class Freeing final : public SteppedWork {
 public:
  Freeing(SessionId session, std::vector<PageId> pages, RequestId request_id)
      : session_(session), pages_(std::move(pages)), request_id_(request_id) {}

  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override {
    return Operation::kFree;
  }
  // Goes on if it has begun to free pages; else frees nothing.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  const absl::Status& status() const { return status_; }

 private:
  enum class Stage { kBegin, kCheck, kFree, kStop };

  bool Begin(CacheParts& parts, Session& session);
  bool Check(CacheParts& parts, Session& session);
  bool Free(CacheParts& parts, Session& session);

  const SessionId session_;
  std::vector<PageId> pages_;  // those that are not freed yet
  const RequestId request_id_;
  Stage stage_ = Stage::kBegin;
  size_t checked_ = 0;
  ListedPages listed_;
  absl::Status status_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_FREEING_H_
