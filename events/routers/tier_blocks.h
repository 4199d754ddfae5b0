#ifndef PANDO_EVENTS_ROUTERS_TIER_BLOCKS_H_
#define PANDO_EVENTS_ROUTERS_TIER_BLOCKS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "core/requests/namespace_key.h"
#include "events/routers/block_runs.h"
#include "events/routers/kv_event_batch.h"
#include "events/routers/published_blocks.h"
#include "events/tier_changes.h"

namespace pando {

// Tells routers of the blocks in one tier of this machine. It knows the pages
// that the tier has, with their tokens, and tells of a block while the tier has
// all of its pages. A tier can have far more than a pool; so it tells little in
// each turn. Owned by KvEventStream; not thread-safe.
class TierBlocks {
 public:
  // Both outlive this.
  TierBlocks(KvMedium medium, TierChanges* tier, const PublishedBlocks* rules);

  KvMedium medium() const { return medium_; }

  // Learns what has changed. Returns the blocks that were told of and that are
  // gone; valid until the next call.
  std::span<const BlockId> TakeChanges();
  // Tells of some blocks that were not told of yet, each after the block before
  // it, if the tier has that.
  void TellSome(const BlockRuns::Visit& visit);
  // No subscriber knows of any block; all are to be told of.
  void TellAllAnew();
  // There are no subscribers until TellAllAnew.
  void StopTelling();

 private:
  struct Page {
    BlockId before;  // if it does not begin its prompt
    uint32_t ordinal;
    std::shared_ptr<const NamespaceKey> ns;
    std::vector<Token> tokens;
    // Subscribers know of the block that the page ends.
    bool is_told = false;
    bool is_listed = false;  // for TellAllAnew alone
  };

  bool EndsBlock(const Page& page) const {
    return page.ordinal % rules_->pages_per_block() == 0;
  }
  bool BeginsBlock(const Page& page) const {
    return (page.ordinal - 1) % rules_->pages_per_block() == 0;
  }
  void Add(BlockId id, TierChange::Page page);
  void Remove(BlockId id);
  // The last pages, as far as they are there, of the blocks that `id` is in.
  void ForEachEnd(BlockId id, const std::function<void(BlockId, Page&)>& visit);
  // Sets `block_` and `parent_` for the block that ends with `last`. False: not
  // all of its pages are there.
  bool FindBlock(BlockId last);

  const KvMedium medium_;
  TierChanges* const tier_;
  const PublishedBlocks* const rules_;
  bool is_telling_ = true;
  absl::flat_hash_map<BlockId, Page> pages_;
  // The pages that follow a page within a block; those that are there.
  absl::flat_hash_map<BlockId, std::vector<BlockId>> next_;
  // Last pages of blocks that are to be told of; also some that are gone.
  std::deque<BlockId> untold_;
  std::vector<BlockId> gone_;
  BlockRuns runs_;
  // The block that FindBlock found.
  std::vector<std::span<const Token>> block_;
  std::optional<BlockId> parent_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_TIER_BLOCKS_H_
