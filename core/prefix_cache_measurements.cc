// What PrefixCache measures for operators.

#include "core/prefix_cache.h"

namespace pando {
namespace {

double SecondsOf(uint32_t tenths) { return tenths / 10.0; }

}  // namespace

// Nobody is waited for as a rule, and then the wait is not timed.
PrefixCache::Hold::Hold(PrefixCache* cache, Operation operation)
    : cache_(cache) {
  if (cache->options_.clock == nullptr) {
    cache->mutex_.Lock();
    return;
  }
  operation_ = operation;
  begin_ = cache->options_.clock();
  double wait = 0;
  if (!cache->mutex_.TryLock()) {
    cache->mutex_.Lock();
    wait = SecondsSinceBegin();
  }
  cache->measured_.lock_wait_seconds.Record(wait);
}

PrefixCache::Hold::~Hold() {
  if (operation_.has_value()) {
    cache_->measured_.operation_seconds[*operation_].Record(
        SecondsSinceBegin());
  }
  const std::vector<EndedWait> ended = cache_->pending_.TakeEndedWaits();
  cache_->mutex_.Unlock();
  for (const auto& [wait, outcome] : ended) {
    cache_->options_.on_wait_over(wait, outcome);
  }
}

double PrefixCache::Hold::SecondsSinceBegin() const {
  return static_cast<double>(cache_->options_.clock() - begin_) * 1e-9;
}

void PrefixCache::RecordMatch(const FoundPrefix& found, uint32_t quota_class) {
  ClassTraffic& traffic = measured_.classes[quota_class];
  if (found.pages() == 0) {
    ++traffic.missed_matches;
  } else if (found.pages() < found.max_pages) {
    ++traffic.partial_matches;
  } else {
    ++traffic.full_matches;
  }
}

// What is locked is in use until now. Many nodes of a path were used together.
void PrefixCache::RecordReuse(const Node& end) {
  uint32_t gap = 0;
  uint32_t pages = 0;
  for (const Node* node = &end; !node->is_root(); node = node->parent) {
    const uint32_t own = node->is_locked() ? 0 : tree_.time() - node->used_at;
    if (own != gap && pages > 0) {
      measured_.reuse_gap_seconds.Record(SecondsOf(gap), pages);
      pages = 0;
    }
    gap = own;
    pages += node->page_count;
  }
  if (pages > 0) measured_.reuse_gap_seconds.Record(SecondsOf(gap), pages);
}

void PrefixCache::RecordEviction(const Node& leaf, uint32_t pages,
                                 EvictionReason reason) {
  measured_.evicted_pages[reason][tree_.policy()] += pages;
  measured_.evicted_page_age_seconds[reason].Record(
      SecondsOf(tree_.time() - leaf.inserted_at), pages);
  measured_.evicted_page_idle_seconds[reason].Record(
      SecondsOf(tree_.time() - leaf.used_at), pages);
}

}  // namespace pando
