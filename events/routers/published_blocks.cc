#include "events/routers/published_blocks.h"

#include <algorithm>
#include <optional>

namespace pando {

bool PublishedBlocks::Includes(const NamespaceKey& ns) const {
  if (ns.extra_key.has_value() && ns.extra_key->empty()) return false;
  if (ns.bigram && !config_.bigram) return false;
  if (!ns.cache_salt.has_value()) return true;
  return config_.salted && !ns.cache_salt->empty();
}

void PublishedBlocks::ForEachStored(
    const CachedPages& pages, std::span<const PageId> run,
    const std::function<void(const StoredBlocks&)>& visit) {
  const NamespaceKey& ns = pages.ns(run.front());
  if (!Includes(ns)) return;
  for (const PageId page : run) {
    if (!EndsBlock(pages, page)) continue;
    const PageId before = TakeTokens(pages, page);
    std::optional<BlockId> parent;
    if (before != kPaddingPage) parent = IdOf(pages.hash(before));
    runs_.Add(IdOf(pages.hash(page)), parent, ns, block_, visit);
  }
  runs_.Flush(visit);
}

std::span<const BlockId> PublishedBlocks::Removed(
    const CachedPages& pages, std::span<const PageId> removed) {
  ids_.clear();
  for (const PageId page : removed) {
    if (!EndsBlock(pages, page) || !Includes(pages.ns(page))) continue;
    ids_.push_back(IdOf(pages.hash(page)));
  }
  return ids_;
}

PageId PublishedBlocks::TakeTokens(const CachedPages& pages, PageId last) {
  block_.clear();
  PageId before = last;
  for (uint32_t i = 0; i < config_.pages_per_block; ++i) {
    block_.push_back(pages.tokens(before));
    before = pages.parent(before);
  }
  std::reverse(block_.begin(), block_.end());
  return before;
}

}  // namespace pando
