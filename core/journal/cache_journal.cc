#include "core/journal/cache_journal.h"

namespace pando {
namespace {

double SecondsOf(uint32_t tenths) { return tenths / 10.0; }

// A namespace gets a new root each time it is made anew. Therefore the start of
// a prompt is named by the namespace, not by its root.
GhostList::Place PlaceAfter(const Node& node) {
  return node.is_root() ? GhostList::StartOf(*node.ns->key)
                        : GhostList::AfterNode(Slab<Node>::HandleOf(node));
}

}  // namespace

CacheJournal::CacheJournal(uint32_t capacity_pages, uint32_t quota_classes,
                           uint32_t first_told_hit)
    : capacity_pages_(capacity_pages),
      first_told_hit_(first_told_hit),
      events_(capacity_pages),
      churn_(capacity_pages) {
  measured_.classes.resize(quota_classes);
}

void CacheJournal::NoteMatch(const FoundPrefix& found, const PrefixQuery& query,
                             uint32_t quota_class, uint32_t page_tokens,
                             bool is_counted, uint32_t loaded_pages) {
  ++counters_.matches;
  ClassTraffic& traffic = measured_.classes[quota_class];
  if (found.pages == 0) {
    ++traffic.missed_matches;
  } else if (found.pages < found.max_pages) {
    ++traffic.partial_matches;
  } else {
    ++traffic.full_matches;
  }
  if (!is_counted) return;
  const uint64_t hit_tokens = uint64_t{found.pages} * page_tokens;
  const uint64_t query_tokens =
      uint64_t{
          WholePages(LookaheadOf(query.ns), PromptTokens(query), page_tokens)} *
      page_tokens;
  counters_.query_tokens += query_tokens;
  counters_.hit_tokens += hit_tokens;
  traffic.query_tokens += query_tokens;
  traffic.hit_tokens += hit_tokens;
  traffic.loaded_hit_tokens += uint64_t{loaded_pages} * page_tokens;
}

// A locked node counts as used until now. Neighbouring nodes of a path that
// were used at the same time are recorded together.
void CacheJournal::NoteReuse(const Node& end, uint32_t now) {
  uint32_t gap = 0;
  uint32_t pages = 0;
  for (const Node* node = &end; !node->is_root(); node = node->parent) {
    const uint32_t own = node->is_locked() ? 0 : now - node->used_at;
    if (own != gap && pages > 0) {
      measured_.reuse_gap_seconds.Record(SecondsOf(gap), pages);
      pages = 0;
    }
    gap = own;
    pages += node->page_count;
  }
  if (pages > 0) measured_.reuse_gap_seconds.Record(SecondsOf(gap), pages);
}

// A node has at least as many hits as the nodes below it. hit_count includes
// the insert that made the node, which is no hit; hence `<=`. While the tree is
// being described, the log may not know the page yet; a later hit will report
// it.
void CacheJournal::NoteHit(const Node& end) {
  if (first_told_hit_ == 0 || description_.has_value()) return;
  const Node* node = &end;
  while (!node->is_root() && node->hit_count <= first_told_hit_) {
    node = node->parent;
  }
  if (!node->is_root()) events_.Hit(node->pages().back());
}

void CacheJournal::NoteRejectedQuota(uint32_t quota_class) {
  ++counters_.quota_rejections;
  ++measured_.classes[quota_class].quota_rejections;
}

void CacheJournal::NoteLockEnd(LockEnd end, absl::Time taken_at) {
  ++counters_.locks_released;
  ++measured_.ended_locks[end];
  // It converts to milliseconds first, because the division of two durations
  // would take longer than the rest of this function.
  measured_.lock_hold_seconds.Record(
      static_cast<double>(absl::ToInt64Milliseconds(time_ - taken_at)) / 1000);
}

void CacheJournal::NoteStored(const Node& leaf) {
  counters_.inserted_pages += leaf.page_count;
  if (description_.has_value()) {
    description_->Tell(leaf, events_);
  } else {
    LogNode(leaf, events_);
  }
  LogNode(leaf, churn_);
}

void CacheJournal::NoteTrimmed(const Node& leaf, uint32_t kept_pages,
                               EvictionReason reason, EvictionPolicyKind policy,
                               uint32_t page_tokens, uint32_t now) {
  if (description_.has_value()) description_->Tell(leaf, events_);
  const uint32_t pages = leaf.page_count - kept_pages;
  measured_.evicted_pages[reason][policy] += pages;
  if (leaf.has_ended && reason != EvictionReason::kFlush) {
    measured_.evicted_ended_pages += pages;
  }
  measured_.evicted_page_age_seconds[reason].Record(
      SecondsOf(now - leaf.inserted_at), pages);
  measured_.evicted_page_idle_seconds[reason].Record(
      SecondsOf(now - leaf.used_at), pages);
  const Token* const first =
      leaf.tokens(page_tokens) + size_t{kept_pages} * page_tokens;
  const Node& before = kept_pages > 0 ? leaf : *leaf.parent;
  ghosts_.Add(
      PlaceAfter(before),
      GhostList::Fingerprint({first, page_tokens + leaf.ns->lookahead()}),
      reason, time_);
}

void CacheJournal::NoteEvicted(std::span<const PageId> pages,
                               EvictionReason reason) {
  if (description_.has_value()) description_->Forget(pages);
  events_.Removed(pages, reason);
  churn_.Removed(pages, reason);
  EvictedPages(reason) += pages.size();
}

std::optional<GhostList::Ghost> CacheJournal::FindEvicted(
    const NamespaceKey& ns, const Node* node,
    std::span<const Token> page) const {
  return ghosts_.Find(
      node == nullptr ? GhostList::StartOf(ns) : PlaceAfter(*node),
      GhostList::Fingerprint(page));
}

void CacheJournal::StopEvents() {
  events_.Stop();
  description_.reset();
}

bool CacheJournal::TakeEvents(const RadixTree& tree, uint32_t nodes,
                              std::vector<RawEvent>& events) {
  if (events_.has_gap()) {
    events_.EndGap();
    description_.emplace(capacity_pages_);
  }
  if (description_.has_value() &&
      description_->TellNext(tree, nodes, events_)) {
    description_.reset();
  }
  events_.Take(events);
  return !description_.has_value() && !events_.has_gap();
}

void CacheJournal::TakeChurn(std::vector<RawEvent>& events) {
  churn_.Start();
  if (churn_.has_gap()) churn_.EndGap();
  churn_.Take(events);
}

uint64_t& CacheJournal::EvictedPages(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kAllocation:
      return counters_.evicted_pages_for_allocation;
    case EvictionReason::kWatermark:
      return counters_.evicted_pages_for_watermark;
    case EvictionReason::kQuota:
      return counters_.evicted_pages_for_quota;
    case EvictionReason::kRequest:
    case EvictionReason::kFlush:
      break;
  }
  return counters_.evicted_pages_on_request;
}

}  // namespace pando
