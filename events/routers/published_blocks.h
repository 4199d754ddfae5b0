#ifndef PANDO_EVENTS_ROUTERS_PUBLISHED_BLOCKS_H_
#define PANDO_EVENTS_ROUTERS_PUBLISHED_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "events/cached_pages.h"
#include "events/routers/block_runs.h"
#include "events/routers/kv_event_batch.h"

namespace pando {

// Decides which blocks routers are told about. A block is `pages_per_block`
// pages of one prompt, counted from its beginning. The hash of its last page
// names it, and it is cached exactly while that page is. Not thread-safe.
class PublishedBlocks {
 public:
  struct Config {
    uint32_t pages_per_block = 1;
    // Whether to include namespaces with a cache salt, and bigram namespaces.
    bool salted = false;
    bool bigram = false;
  };

  explicit PublishedBlocks(Config config) : config_(config) {}

  uint32_t pages_per_block() const { return config_.pages_per_block; }

  // Returns whether routers are told about this namespace at all. They take an
  // empty extra key or salt for none; so a namespace with an empty one is left
  // out, as its blocks would be taken for those of another namespace.
  bool Includes(const NamespaceKey& ns) const;

  // Calls `visit` with the blocks that end in `run`: cached pages that follow
  // one another in one prompt. Each call gets a bounded number of blocks, which
  // are valid until `visit` returns.
  void ForEachStored(const CachedPages& pages, std::span<const PageId> run,
                     const std::function<void(const StoredBlocks&)>& visit);

  // The blocks that end in `removed`, whose pages are still in `pages`. Valid
  // until the next call.
  std::span<const BlockId> Removed(const CachedPages& pages,
                                   std::span<const PageId> removed);

 private:
  bool EndsBlock(const CachedPages& pages, PageId page) const {
    return pages.ordinal(page) % config_.pages_per_block == 0;
  }
  // Sets `block_` for the block that ends with `last`; returns the page before
  // the block.
  PageId TakeTokens(const CachedPages& pages, PageId last);

  const Config config_;
  BlockRuns runs_{KvMedium::kGpu};
  // Scratch.
  std::vector<BlockId> ids_;
  std::vector<std::span<const Token>> block_;  // the tokens of each page
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_PUBLISHED_BLOCKS_H_
