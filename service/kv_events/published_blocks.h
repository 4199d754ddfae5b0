#ifndef PANDO_SERVICE_KV_EVENTS_PUBLISHED_BLOCKS_H_
#define PANDO_SERVICE_KV_EVENTS_PUBLISHED_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "service/events/cached_pages.h"
#include "service/kv_events/kv_event_batch.h"

namespace pando {

// Which blocks routers are told of. A block is `pages_per_block` pages of one
// prompt, counted from its beginning, and is named by the hash of its last
// page; it is cached exactly while that page is. Not thread-safe.
class PublishedBlocks {
 public:
  struct Config {
    uint32_t pages_per_block = 1;
    // Also those of namespaces with a cache salt, and of bigram namespaces.
    bool salted = false;
    bool bigram = false;
  };

  explicit PublishedBlocks(Config config) : config_(config) {}

  // Whether routers are told of this namespace at all. They read an empty
  // extra key or salt as none, so they are not told of a namespace with one:
  // they would take its blocks for those of another.
  bool Includes(const NamespaceKey& ns) const;

  // Calls `visit` with the blocks that end in `run`, which is cached: pages
  // that follow one another in one prompt. What `visit` is given is of a
  // bounded size, and valid until it returns.
  void ForEachStored(const CachedPages& pages, std::span<const PageId> run,
                     const std::function<void(const StoredBlocks&)>& visit);

  // The blocks that end in `removed`, which are still in `pages`. Valid until
  // the next call.
  std::span<const BlockId> Removed(const CachedPages& pages,
                                   std::span<const PageId> removed);

 private:
  bool EndsBlock(const CachedPages& pages, PageId page) const {
    return pages.ordinal(page) % config_.pages_per_block == 0;
  }
  // Appends the block's tokens; returns the page before it.
  PageId AppendTokens(const CachedPages& pages, PageId last);

  const Config config_;
  // Scratch.
  std::vector<BlockId> ids_;
  std::vector<Token> tokens_;
  std::vector<PageId> block_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_PUBLISHED_BLOCKS_H_
