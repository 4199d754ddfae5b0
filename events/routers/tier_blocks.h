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

// Decides which blocks of one tier of this machine routers are told about. It
// keeps the tokens of all pages that the tier has. A block is reported while
// the tier has all of its pages. A tier can have far more blocks than a pool,
// so only a few are reported in each turn. Owned by KvEventStream; not
// thread-safe.
class TierBlocks {
 public:
  // Both pointers must outlive this object. Calls FollowChanges.
  TierBlocks(KvMedium medium, TierChanges* tier, const PublishedBlocks* rules);

  KvMedium medium() const { return medium_; }

  // Takes the changes of the tier. Returns the reported blocks that are gone;
  // they are valid until the next call.
  std::span<const BlockId> TakeChanges();
  // Visits some blocks that were not reported yet, each after the block before
  // it if the tier has that, and marks them as reported.
  void TellSome(const BlockRuns::Visit& visit);
  // Says that subscribers know no block: all are to be reported again.
  void TellAllAnew();
  // Says that there are no subscribers: no block is reported until TellAllAnew.
  void StopTelling();

 private:
  struct Page {
    BlockId before;  // if it does not begin its prompt
    uint32_t ordinal;
    std::shared_ptr<const NamespaceKey> ns;
    std::vector<Token> tokens;
    // Whether the block that ends with this page was reported.
    bool is_told = false;
    bool is_listed = false;  // only TellAllAnew uses it
  };

  bool EndsBlock(const Page& page) const {
    return page.ordinal % rules_->pages_per_block() == 0;
  }
  bool BeginsBlock(const Page& page) const {
    return (page.ordinal - 1) % rules_->pages_per_block() == 0;
  }
  void Add(BlockId id, TierChange::Page page);
  void Remove(BlockId id);
  // Visits the last pages of the blocks that contain the page `id`, as far as
  // the tier has them.
  void ForEachEnd(BlockId id, const std::function<void(BlockId, Page&)>& visit);
  // Sets `block_` and `parent_` for the block that ends with `last`. Returns
  // false if the tier does not have all of its pages.
  bool FindBlock(BlockId last);

  const KvMedium medium_;
  TierChanges* const tier_;
  const PublishedBlocks* const rules_;
  bool is_telling_ = true;
  absl::flat_hash_map<BlockId, Page> pages_;
  // For each page, the pages that follow it within a block and that the tier
  // has.
  absl::flat_hash_map<BlockId, std::vector<BlockId>> next_;
  // The last pages of blocks that are to be reported; some may be gone.
  std::deque<BlockId> untold_;
  std::vector<BlockId> gone_;
  BlockRuns runs_;
  // The block that FindBlock has found: the tokens of its pages, and the block
  // before it.
  std::vector<std::span<const Token>> block_;
  std::optional<BlockId> parent_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_TIER_BLOCKS_H_
