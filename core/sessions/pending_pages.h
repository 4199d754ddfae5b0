#ifndef PANDO_CORE_SESSIONS_PENDING_PAGES_H_
#define PANDO_CORE_SESSIONS_PENDING_PAGES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "base/ids.h"
#include "core/nodes/node.h"
#include "core/nodes/page_pool.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"
#include "core/tree/prefix_search.h"
#include "core/tree/radix_tree.h"

namespace pando {

// A page that a session is computing. It comes after the end of node `after`,
// and `tokens` spell it. Plain data, owned by PendingPages.
struct PendingPage {
  LockRecord* owner;
  const Node* after;
  std::vector<Token> tokens;
  Reservation reserved;       // the page it is written to, if known
  std::vector<WaitId> waits;  // in order of arrival
};

// A wait that has ended, and how it ended.
struct EndedWait {
  WaitId wait;
  PendingOutcome outcome;
};

// The pages that are being computed, and the calls that wait for them, so that
// several workers compute a common prefix only once ("single flight"). An
// admission that reserves pages marks the page after its match as pending.
// Another admission whose match ends at a pending page may wait until that page
// is published or given up, or its owner is lost.
//
// Owned by CacheParts; not thread-safe. Waits that end are collected here;
// PrefixCache reports them once it has released the mutex.
//
// Invariants: an owner has one page, which comes after the node of its lock and
// is not cached; a wait is for one page. A wait holds nothing, so that waits
// cannot block each other.
class PendingPages {
 public:
  // The waits since the start, and how many ended in which way.
  struct Counts {
    uint64_t waits = 0;
    uint64_t published = 0;  // published or loaded
    uint64_t given_up = 0;
    uint64_t timed_out = 0;
  };

  // `tree`, which holds the nodes that pending pages come after, outlives this.
  PendingPages(const RadixTree* tree, uint32_t capacity_pages)
      : tree_(tree), is_to_be_written_(capacity_pages) {}

  // Returns the pending page right after the match `found` of `query`; null if
  // no session computes that page.
  PendingPage* Find(const FoundPrefix& found, const PrefixQuery& query) const;
  // Returns the pending page after `after` that `tokens` begin with; null if no
  // session computes it or the tokens are less than a whole page.
  PendingPage* Find(const Node& after, std::span<const Token> tokens) const;

  // Notes that the session of `lock` computes `rest`, the tokens of its prompt
  // after the lock: marks the first page of `rest` as pending. Does nothing if
  // `rest` is less than a whole page, if that page is cached already (the match
  // may have been capped), or if another lock has marked it. `reserved` is the
  // page that it will be written to, if that is known. REQUIRES: lock.pending
  // is null.
  void Mark(LockRecord& lock, std::span<const Token> rest,
            Reservation reserved);
  // Removes a pending page, and ends the waits for it with `outcome`. Does
  // nothing if `page` is null.
  void End(PendingPage* page, PendingOutcome outcome);
  // Gives up the pending page that was to be written to `reserved`, if there is
  // one. Callers call this for each page that is sealed or freed.
  void EndReserved(Reservation reserved) {
    if (is_to_be_written_[reserved.page.value()]) GiveUp(reserved);
  }

  // Begins a wait of a call of `session` for the page.
  WaitId Wait(PendingPage& page, SessionId session);
  // Ends a wait whose time is up; it is not reported. Returns false if the wait
  // had ended already.
  bool Cancel(WaitId wait);
  // Ends the waits of calls of a session that has ended, as kOwnerLost.
  void EndWaitsOf(SessionId session);
  // Returns the waits that ended since the last call, for PrefixCache to
  // report.
  std::vector<EndedWait> TakeEndedWaits() {
    return std::exchange(ended_, std::vector<EndedWait>());
  }

  const Counts& counts() const { return counts_; }
  uint32_t wait_count() const { return static_cast<uint32_t>(waits_.size()); }

  // Adds a sentence for each invariant that does not hold. It does not look at
  // the tree; InvariantCheck compares pending pages with the tree.
  void AppendViolations(std::vector<std::string>& violations) const;

  template <typename F>
  void ForEach(F&& visit) const {
    for (const auto& page : pages_) visit(*page);
  }

 private:
  using PagePtr = std::unique_ptr<PendingPage>;
  using Place = std::pair<const Node*, std::span<const Token>>;

  static Place PlaceOf(const Place& place) { return place; }
  static Place PlaceOf(const PagePtr& page) {
    return {page->after, page->tokens};
  }
  struct Hash {
    using is_transparent = void;
    template <typename T>
    size_t operator()(const T& item) const {
      const Place place = PlaceOf(item);
      return absl::HashOf(
          place.first,
          absl::MakeConstSpan(place.second.data(), place.second.size()));
    }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const Place left = PlaceOf(a);
      const Place right = PlaceOf(b);
      return left.first == right.first &&
             std::equal(left.second.begin(), left.second.end(),
                        right.second.begin(), right.second.end());
    }
  };
  struct WaitRecord {
    PendingPage* page;
    SessionId session;
  };

  // The tokens that spell the first page of `tokens`; empty if they are less
  // than a whole page.
  static std::span<const Token> FirstPage(const Namespace& ns,
                                          std::span<const Token> tokens,
                                          uint32_t page_tokens);
  bool Drop(WaitId wait);
  void GiveUp(Reservation reserved);

  const RadixTree* const tree_;
  absl::flat_hash_set<PagePtr, Hash, Equal> pages_;
  absl::flat_hash_map<Reservation, PendingPage*> by_reserved_;
  // Whether by_reserved_ contains a page, by page id. It saves a look-up for
  // nearly all pages.
  std::vector<bool> is_to_be_written_;
  absl::flat_hash_map<WaitId, WaitRecord> waits_;
  std::vector<EndedWait> ended_;
  uint64_t last_wait_ = 0;
  Counts counts_;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_PENDING_PAGES_H_
