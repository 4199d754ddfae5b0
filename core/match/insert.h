#ifndef PANDO_CORE_MATCH_INSERT_H_
#define PANDO_CORE_MATCH_INSERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/nodes/segment.h"
#include "core/parts/cache_parts.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// The parts of PrefixCache::Insert, which Inserting puts together. The tokens
// are copied outside the mutex, before the step that publishes them. Some of
// them may be held by the anchor, so a first step under the mutex fetches what
// the copy needs:
//
//   CheckHints(request)                      no mutex
//   CheckAnchor(request)                     no mutex
//   FindInsertSource(parts, ...)             mutex: what the anchor knows
//   MakeSegment(request, source, ...)        no mutex: the copy
//   Publish(parts, request, ...)             mutex: all or nothing

// INVALID_FIELD when the request contradicts itself on what comes next.
absl::Status CheckHints(const InsertRequest& request);

// INVALID_FIELD when the request contradicts itself on where it begins.
absl::Status CheckAnchor(const InsertRequest& request);

// The facts of the namespace and the anchor that MakeSegment needs.
struct InsertSource {
  uint32_t lookahead = 0;
  HeldPrompt prompt = {};  // the prompt that the anchor holds
};
absl::StatusOr<InsertSource> FindInsertSource(const CacheParts& parts,
                                              const InsertRequest& request,
                                              const Session& session);

// Where an insert begins. Null: no anchor; nothing is cached in the namespace.
struct InsertTarget {
  LockRecord* anchor;
  Namespace* ns;
  TreePosition start;
};
absl::StatusOr<InsertTarget> FindTarget(const CacheParts& parts,
                                        const InsertRequest& request,
                                        const Session& session);

// INVALID_ALIGNMENT unless the insert has one page id for each whole page.
absl::Status CheckAlignment(const InsertRequest& request, uint32_t lookahead,
                            uint32_t page_tokens);

// The tokens of `pages` pages of an insert, after its first ones, and the ids.
SegmentRef MakeSegment(const InsertRequest& request, const InsertSource& source,
                       uint32_t page_tokens, size_t first_page, size_t pages);

// The whole pages of an insert; none when it has no whole page. Fails as
// CheckAlignment does.
absl::StatusOr<SegmentRef> MakeSegment(const InsertRequest& request,
                                       const InsertSource& source,
                                       uint32_t page_tokens);

// Whether the tokens that the insert sends continue those before it.
absl::Status CheckContinuation(const InsertTarget& target, Token first,
                               uint32_t page_tokens);

// Adds the part of `segment` that is not cached yet. An error changes nothing;
// LOCK_MOVED when the anchor no longer holds the prompt of `source`. May swap
// `segment` for memory that the caller then frees outside the mutex.
absl::Status Publish(CacheParts& parts, const InsertRequest& request,
                     const InsertSource& source, Session& session,
                     SegmentRef& segment, InsertResult& result);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_INSERT_H_
