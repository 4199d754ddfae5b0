#ifndef PANDO_CORE_EVICTION_GHOST_LIST_H_
#define PANDO_CORE_EVICTION_GHOST_LIST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/eviction/ghost_ring.h"
#include "core/requests/eviction_reason.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Remembers the last 65,536 evicted runs of pages, so that an explanation can
// tell "evicted" from "never cached". A run is found by the place where its
// first page was and by a fingerprint of that page's tokens; the tokens
// themselves are not kept. Two runs at one place whose fingerprints are equal
// by chance are mistaken for one.
//
// Owned by CacheJournal; not thread-safe. Each call is O(1).
class GhostList {
 public:
  // The place of a page is what comes before it: the end of a node, or the
  // start of a prompt. The start is named by the namespace and not by its root
  // node, because a namespace that was emptied gets a new root.
  using Place = uint64_t;
  static Place AfterNode(uint64_t node_handle) { return node_handle; }
  static Place StartOf(const NamespaceKey& ns);

  // The fingerprint of the tokens that spell a page: in a bigram namespace one
  // token more than the page holds.
  static uint64_t Fingerprint(std::span<const Token> page);

  using Ghost = GhostRing<EvictionReason>::Ghost;

  static constexpr uint32_t kMaxGhosts = GhostRing<EvictionReason>::kMaxGhosts;

  // Remembers an evicted run whose first page was at `place`. When the list is
  // full, the oldest run is forgotten.
  void Add(Place place, uint64_t fingerprint, EvictionReason reason,
           absl::Time now) {
    ring_.Add({place, fingerprint}, reason, now);
  }

  // The run that began with this page at `place` and was evicted last.
  std::optional<Ghost> Find(Place place, uint64_t fingerprint) const {
    return ring_.Find({place, fingerprint});
  }

 private:
  GhostRing<EvictionReason> ring_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_GHOST_LIST_H_
