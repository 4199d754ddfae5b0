#ifndef PANDO_CORE_INSERT_H_
#define PANDO_CORE_INSERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/cache_parts.h"
#include "core/requests.h"
#include "core/segment.h"
#include "core/session_table.h"

namespace pando {

// The steps of PrefixCache::Insert. An insert copies its tokens before it takes
// the mutex for the step that publishes them, so it is told first what its
// anchor knows of them:
//
//   CheckAnchor(request)                     no mutex
//   FindInsertSource(parts, ...)             mutex: what the anchor knows
//   MakeSegment(request, source, ...)        no mutex: the copy
//   Publish(parts, request, ...)             mutex: all or nothing

// INVALID_FIELD when the request contradicts itself on where it begins.
absl::Status CheckAnchor(const InsertRequest& request);

// What an insert has to know before it makes its segment.
struct InsertSource {
  uint32_t lookahead = 0;
  HeldPrompt prompt = {};  // of the anchor
};
absl::StatusOr<InsertSource> FindInsertSource(const CacheParts& parts,
                                              const InsertRequest& request,
                                              const Session& session);

// The whole pages of an insert; none when it has no whole page.
// INVALID_ALIGNMENT when it does not have one page id for each.
absl::StatusOr<SegmentRef> MakeSegment(const InsertRequest& request,
                                       const InsertSource& source,
                                       uint32_t page_tokens);

// Adds `segment`, but for what is cached already. An error changes nothing;
// LOCK_MOVED when the anchor's prompt is not that of `source` any more.
// `segment` may be swapped for what the caller lets go of outside the mutex.
absl::Status Publish(CacheParts& parts, const InsertRequest& request,
                     const InsertSource& source, Session& session,
                     SegmentRef& segment, InsertResult& result);

}  // namespace pando

#endif  // PANDO_CORE_INSERT_H_
