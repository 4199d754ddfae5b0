#ifndef PANDO_CORE_MATCH_INSERTING_H_
#define PANDO_CORE_MATCH_INSERTING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/match/insert.h"
#include "core/match/page_steps.h"
#include "core/parts/stepped_work.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// PrefixCache::Insert. Tokens are copied without the mutex, before the step
// that publishes them.
//
// One of many pages checks all of them, some in each step; then it publishes
// part by part. If the insert moves or releases its anchor, that goes with the
// parts and keeps them cached. Otherwise a part may be evicted before the next
// one: what comes after it is freed then, as if it had been evicted, too.
class Inserting final : public SteppedWork {
 public:
  // The memory that the request refers to outlives this; its tokens are there
  // until the last step, or until Abandon.
  Inserting(const InsertRequest& request, uint32_t page_tokens);

  void Prepare() override;
  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override;
  // Publishes the rest all the same, if it has begun to.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<InsertResult> Take();
  // Whether it publishes part by part.
  bool has_many_pages() const;

 private:
  enum class Stage { kBegin, kPublish, kCheck, kParts, kFree, kStop };

  // The pages from `next_` on that the next step is about.
  size_t PartPages() const;
  InsertRequest PartRequest() const;

  bool Begin(CacheParts& parts, Session& session);
  bool PublishAtOnce(CacheParts& parts, Session& session);
  bool CheckPart(CacheParts& parts, Session& session);
  absl::Status CheckPages(CacheParts& parts, Session& session);
  // Follows the tokens of the part as far as they are cached.
  absl::Status WalkPart(const CacheParts& parts, const Session& session,
                        std::vector<PageId>& canonical);
  bool PublishPart(CacheParts& parts, Session& session);
  // Whether the anchor is where the last part left it.
  absl::Status CheckAnchorStays(const CacheParts& parts,
                                const Session& session) const;
  void NotePart(const CacheParts& parts, const Session& session,
                const InsertResult& part);
  void GiveUp(CacheParts& parts, Session& session, const absl::Status& why);
  bool FreeRest(CacheParts& parts, Session& session);
  bool Finish(CacheParts& parts, Session& session);

  InsertRequest request_;
  const uint32_t page_tokens_;
  Stage stage_;
  InsertSource source_;
  SegmentRef segment_;
  absl::Status status_;
  InsertResult result_;

  // For an insert of many pages.
  size_t next_ = 0;            // the first page of the next part
  PrefixHandle position_;      // where the last part ended
  NamespaceKey ns_;            // that of the anchor
  HeldPrompt anchors_;         // the prompt that the anchor holds by now
  std::vector<Token> tokens_;  // once the caller is gone
  ListedPages listed_;
  bool is_past_cached_ = false;  // what follows is not cached yet
  uint32_t joining_ = 0;         // pages of another class
  size_t existing_ = 0;  // where the last page ends that was cached already
  std::span<const PageId> unpublished_;  // pages that were given up
  std::span<const PageId> free_pages_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_INSERTING_H_
