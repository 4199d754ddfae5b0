#ifndef PANDO_TIERS_SHARED_REMOTE_TIER_H_
#define PANDO_TIERS_SHARED_REMOTE_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "tiers/shared/block_values.h"
#include "tiers/shared/remote_blocks.h"
#include "tiers/shared/remote_loads.h"
#include "tiers/shared/remote_store.h"
#include "tiers/shared/remote_stores.h"
#include "tiers/store_target.h"
#include "tiers/tier_figures.h"

namespace pando {

// Copies of pages in a store that many machines share. It asks the store which
// blocks are there, and verifies what comes from it. Pages are copied to and
// from buffers, so they stay locked only for as long as that takes, however
// slow the store is.
//
// Each call of the store has a timeout. When several calls in a row fail, calls
// of the same kind (asking, loading, storing) are not tried for a while. Owned
// by Tiers. One thread stores, one asks and one loads, at the same time; all
// other methods are thread-safe.
class RemoteTier final : public StoreTarget {
 public:
  // How long calls of the store may take. The deadline that a call is given is
  // half of it, so that the store has time to end by itself.
  struct Timeouts {
    absl::Duration ask = absl::Milliseconds(250);
    absl::Duration get = absl::Seconds(2);
    absl::Duration put = absl::Seconds(5);
  };

  RemoteTier(BlockValues values, std::unique_ptr<RemoteStore> store,
             const Timeouts& timeouts);

  // Returns how many blocks at the front of `run` the store says it has.
  size_t CountPresent(uint64_t ns_digest, std::span<const PageHash> run) {
    return loads_.CountPresent(KeyOf(ns_digest), run);
  }
  // Fills `pages` with the blocks of `run`. Returns how many pages from the
  // front now hold what was stored; the contents of the others are undefined.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages) {
    return loads_.Load(KeyOf(ns_digest), run, pages);
  }
  // Begins to erase the blocks of a namespace, or of all namespaces with none,
  // including those that are being stored. Nothing is loaded or stored until
  // they are erased.
  void Forget(std::optional<uint64_t> ns_digest);
  // Says which configuration of the model computes from now on; it is 0 before
  // that. Called once. Only blocks of this configuration are found after that.
  void SetModel(uint64_t model);

  size_t capacity_pages() const override {
    return std::numeric_limits<size_t>::max();
  }
  size_t max_pages_per_store() const override {
    return stores_.max_pages_per_store();
  }
  size_t CountStored(std::span<const PageHash> run) const override;
  bool TouchIfStored(std::span<const PageHash> prompt) override;
  void BeginPrompt(uint64_t ns_digest,
                   std::span<const PageHash> prompt) override {
    stores_.BeginPrompt(KeyOf(ns_digest), prompt);
  }
  void Store(uint64_t ns_digest, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm) override {
    stores_.Store(KeyOf(ns_digest), prompt, begin, pages, confirm);
  }
  void EndPrompt() override { stores_.EndPrompt(); }
  void CountDropped(uint64_t pages) override { stores_.CountDropped(pages); }

  TierFigures figures() const;

 private:
  // Returns the number that names a namespace of this configuration in the
  // store.
  uint64_t KeyOf(uint64_t ns_digest) const { return ns_digest ^ model_; }

  std::atomic<uint64_t> model_ = 0;
  RemoteBlocks blocks_;
  // These come after `blocks_`, which their threads use.
  RemoteLoads loads_;
  RemoteStores stores_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_TIER_H_
