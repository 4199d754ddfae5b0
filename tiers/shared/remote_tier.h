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

// Copies of pages in a store that many machines share. What is there, the store
// is asked; what comes from it is verified. Pages are copied to and from
// buffers, so that they are locked no longer than that takes, however slow the
// store is.
//
// Each call has a timeout; when calls fail one after the other, those of the
// same kind (asking, loading, storing) are not tried for a while. Owned by
// Tiers. One thread stores, one asks, one loads, at the same time; all else is
// thread-safe.
class RemoteTier final : public StoreTarget {
 public:
  // How long calls of the store may take. It may end by itself in half of each.
  struct Timeouts {
    absl::Duration ask = absl::Milliseconds(250);
    absl::Duration get = absl::Seconds(2);
    absl::Duration put = absl::Seconds(5);
  };

  RemoteTier(BlockValues values, std::unique_ptr<RemoteStore> store,
             const Timeouts& timeouts);

  // How many blocks at the front of `run` the store says it has.
  size_t CountPresent(uint64_t ns_digest, std::span<const PageHash> run) {
    return loads_.CountPresent(KeyOf(ns_digest), run);
  }
  // Fills `pages` with the blocks of `run`. Returns how many from the front
  // are what they were when they were stored; the others have any contents.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages) {
    return loads_.Load(KeyOf(ns_digest), run, pages);
  }
  // Erases what is stored of a namespace, or being stored; none: of all. Until
  // this is done, nothing is loaded or stored.
  void Forget(std::optional<uint64_t> ns_digest);
  // Which configuration of the model computes from now on, told once, 0 before
  // that. Only what is stored of it is found.
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
  // Names a namespace of this configuration.
  uint64_t KeyOf(uint64_t ns_digest) const { return ns_digest ^ model_; }

  std::atomic<uint64_t> model_ = 0;
  RemoteBlocks blocks_;
  // Their threads use the blocks.
  RemoteLoads loads_;
  RemoteStores stores_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_TIER_H_
