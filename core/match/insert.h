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

// The steps of PrefixCache::Insert. The tokens are copied outside the mutex,
// before the step that publishes them. Some of them may be held by the anchor,
// so a first step under the mutex fetches what the copy needs:
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

// What MakeSegment needs to know of the namespace and the anchor.
struct InsertSource {
  uint32_t lookahead = 0;
  HeldPrompt prompt = {};  // the prompt that the anchor holds
};
absl::StatusOr<InsertSource> FindInsertSource(const CacheParts& parts,
                                              const InsertRequest& request,
                                              const Session& session);

// The whole pages of an insert; none when it has no whole page.
// INVALID_ALIGNMENT when it does not have one page id for each.
absl::StatusOr<SegmentRef> MakeSegment(const InsertRequest& request,
                                       const InsertSource& source,
                                       uint32_t page_tokens);

// Adds the part of `segment` that is not cached yet. An error changes nothing;
// LOCK_MOVED when the anchor no longer holds the prompt of `source`. May swap
// `segment` for memory that the caller then frees outside the mutex.
absl::Status Publish(CacheParts& parts, const InsertRequest& request,
                     const InsertSource& source, Session& session,
                     SegmentRef& segment, InsertResult& result);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_INSERT_H_
