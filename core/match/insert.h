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

// INVALID_FIELD if the request's hints contradict each other: it says that the
// prefix has ended, but asks to retain it.
absl::Status CheckHints(const InsertRequest& request);

// INVALID_FIELD if the request names both a lock and a handle as its beginning,
// or names no lock but sets a field that needs one.
absl::Status CheckAnchor(const InsertRequest& request);

// The facts of the namespace and the anchor that MakeSegment needs.
struct InsertSource {
  uint32_t lookahead = 0;
  HeldPrompt prompt = {};  // the prompt that the anchor holds
};
// LOCK_UNKNOWN if the session has no such anchor; INVALID_FIELD if the anchor
// holds fewer tokens than request.prompt_tokens.
absl::StatusOr<InsertSource> FindInsertSource(const CacheParts& parts,
                                              const InsertRequest& request,
                                              const Session& session);

// Where an insert begins. `anchor` is null if the request names no lock. `ns`
// is null if the namespace does not exist; `start` is then not set.
struct InsertTarget {
  LockRecord* anchor;
  Namespace* ns;
  TreePosition start;
};
// LOCK_UNKNOWN; NAMESPACE_MISMATCH if the request names another namespace than
// that of the anchor. With a handle, fails as FindHandle does.
absl::StatusOr<InsertTarget> FindTarget(const CacheParts& parts,
                                        const InsertRequest& request,
                                        const Session& session);

// INVALID_ALIGNMENT unless the request has exactly one page id for each whole
// page of its tokens.
absl::Status CheckAlignment(const InsertRequest& request, uint32_t lookahead,
                            uint32_t page_tokens);

// Copies tokens and page ids of `pages` pages of an insert, from its page
// number `first_page` on, into `arena` (SegmentRef::Copy).
SegmentRef MakeSegment(const InsertRequest& request, const InsertSource& source,
                       uint32_t page_tokens, SegmentArena* arena,
                       size_t first_page, size_t pages);

// Copies all whole pages of an insert; returns an empty reference if there is
// none. Fails as CheckAlignment does.
absl::StatusOr<SegmentRef> MakeSegment(const InsertRequest& request,
                                       const InsertSource& source,
                                       uint32_t page_tokens,
                                       SegmentArena* arena);

// In a bigram namespace, INVALID_FIELD unless `first`, the first token of the
// insert, is the last token of the prefix before it.
absl::Status CheckContinuation(const InsertTarget& target, Token first,
                               uint32_t page_tokens);

// Carries out an insert: publishes the pages of `segment` that are not cached
// yet, frees duplicates and request.free_pages, and moves or releases the
// anchor. An error changes nothing; LOCK_MOVED if the anchor no longer holds
// the prompt of `source`. `segment` may be replaced by memory that the caller
// should free outside the mutex.
absl::Status Publish(CacheParts& parts, const InsertRequest& request,
                     const InsertSource& source, Session& session,
                     SegmentRef& segment, InsertResult& result);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_INSERT_H_
