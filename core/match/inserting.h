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

// Implements PrefixCache::Insert. It copies tokens outside the mutex, before
// the step that publishes them.
//
// An insert of many pages first checks all of them, some in each step, and then
// publishes them part by part. If the insert moves or releases its anchor, the
// anchor moves along with the parts and keeps them cached. Otherwise a part may
// be evicted before the next one is published: the remaining pages are then
// freed, as if they had been evicted, too.
class Inserting final : public SteppedWork {
 public:
  // The memory that the request refers to must outlive this; only its tokens
  // may go once the last step is done or Abandon was called.
  // `arena` is where segments are made, see SegmentRef::Copy.
  Inserting(const InsertRequest& request, uint32_t page_tokens,
            SegmentArena* arena);

  void Prepare() override;
  bool Step(CacheParts& parts) override;
  std::optional<Operation> operation() const override;
  // If it has begun to publish, it goes on and publishes the rest.
  bool Abandon() override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<InsertResult> Take();
  // Whether it publishes part by part.
  bool has_many_pages() const;

 private:
  enum class Stage { kBegin, kPublish, kCheck, kParts, kFree, kStop };

  // How many pages, from `next_` on, the next step handles.
  size_t PartPages() const;
  InsertRequest PartRequest() const;

  bool Begin(CacheParts& parts, Session& session);
  bool PublishAtOnce(CacheParts& parts, Session& session);
  bool CheckPart(CacheParts& parts, Session& session);
  absl::Status CheckPages(CacheParts& parts, Session& session);
  // Follows the tokens of the part as far as they are cached, and appends the
  // cached pages to `canonical`.
  absl::Status WalkPart(const CacheParts& parts, const Session& session,
                        std::vector<PageId>& canonical);
  bool PublishPart(CacheParts& parts, Session& session);
  // LOCK_MOVED if the anchor is not where the last part left it.
  absl::Status CheckAnchorStays(const CacheParts& parts,
                                const Session& session) const;
  void NotePart(const CacheParts& parts, const Session& session,
                const InsertResult& part);
  void GiveUp(CacheParts& parts, Session& session, const absl::Status& why);
  bool FreeRest(CacheParts& parts, Session& session);
  bool Finish(CacheParts& parts, Session& session);

  InsertRequest request_;
  const uint32_t page_tokens_;
  SegmentArena* const arena_;
  Stage stage_;
  InsertSource source_;
  SegmentRef segment_;
  absl::Status status_;
  InsertResult result_;

  // The following is used only for an insert of many pages.
  size_t next_ = 0;            // the first page of the next part
  PrefixHandle position_;      // where the last part ended
  NamespaceKey ns_;            // the namespace of the insert
  HeldPrompt anchors_;         // the prompt that the anchor holds by now
  std::vector<Token> tokens_;  // a copy of the tokens, once the caller is gone
  ListedPages listed_;
  // The check has reached pages that are not cached.
  bool is_past_cached_ = false;
  uint32_t joining_ = 0;  // pages reserved for another quota class
  size_t existing_ = 0;   // the end of the last page that was already cached
  std::span<const PageId> unpublished_;  // pages that were given up
  std::span<const PageId> free_pages_;
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_INSERTING_H_
