// Single flight in PrefixCache: what is being computed, and who waits for it.

#include "core/prefix_cache.h"

namespace pando {

bool PrefixCache::CancelWait(WaitId wait) {
  absl::MutexLock hold(&mutex_);
  if (!pending_.Cancel(wait)) return false;
  ++counters_.pending_waits_timed_out;
  return true;
}

// The pending page that a longer match would begin with. Whoever computes it
// has split the tree there.
PendingPage* PrefixCache::FindPending(const FoundPrefix& found,
                                      const PrefixQuery& query) {
  if (found.ns == nullptr || found.pages() == found.max_pages ||
      found.position.is_inside_node()) {
    return nullptr;
  }
  const size_t next = found.pages() * options_.page_tokens - query.after.tokens;
  return pending_.Find(
      *found.position.node,
      query.tokens.subspan(
          next, SpelledTokens(found.ns->lookahead(), 1, options_.page_tokens)));
}

// `rest` comes after the lock. Marks its first page, if it is a whole one that
// is not cached (the match may have been capped) and nobody else's.
void PrefixCache::MarkPending(LockRecord& lock, std::span<const Token> rest,
                              Reservation reserved) {
  const uint32_t lookahead = lock.node->ns->lookahead();
  if (WholePages(lookahead, rest.size(), options_.page_tokens) == 0) return;
  const auto page =
      rest.first(SpelledTokens(lookahead, 1, options_.page_tokens));
  const TreePosition end = EndOf(*lock.node);
  if (tree_.Walk(end, page, 1, nullptr).node != end.node) return;
  if (pending_.Find(*lock.node, page) != nullptr) return;
  pending_.Add(lock, page, reserved);
}

// Null: nothing is pending.
void PrefixCache::EndPending(PendingPage* page, PendingOutcome outcome) {
  if (page == nullptr) return;
  (outcome == PendingOutcome::kPublished ? counters_.pending_waits_published
                                         : counters_.pending_waits_given_up) +=
      page->waits.size();
  pending_.Remove(*page, outcome);
}

// Frees a reserved page. What was to be written there is given up.
void PrefixCache::ReleasePage(Session& session, PageId page) {
  EndPending(pending_.FindReserved(pool_.reservation(page)),
             PendingOutcome::kGivenUp);
  pool_.Release(session.reserved, page);
}

}  // namespace pando
