#ifndef PANDO_TIERS_SHARED_REMOTE_STORES_H_
#define PANDO_TIERS_SHARED_REMOTE_STORES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "tiers/shared/block_window.h"
#include "tiers/shared/circuit_breaker.h"
#include "tiers/shared/deadline_threads.h"
#include "tiers/shared/remote_blocks.h"
#include "tiers/tier_figures.h"

namespace pando {

// Stores pages in a shared store, and tells it which blocks are in use. It
// copies pages to one window while the one before is being sent. Owned by
// RemoteTier. BeginPrompt, Store and EndPrompt are for one thread; the other
// methods are thread-safe.
class RemoteStores {
 public:
  // `blocks` must outlive this object. `put_timeout` limits the store of one
  // window, and one call that tells what is in use.
  RemoteStores(RemoteBlocks* blocks, absl::Duration put_timeout);

  // See StoreTarget, here and below.
  size_t max_pages_per_store() const { return window_blocks_; }
  void BeginPrompt(uint64_t ns_digest, std::span<const PageHash> prompt);
  void Store(uint64_t ns_digest, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm);
  void EndPrompt();
  void CountDropped(uint64_t pages) { dropped_ += pages; }
  // Sets the figures that concern stores.
  void Tell(TierFigures& figures) const;

 private:
  // A window whose blocks are being stored.
  struct Sending {
    std::shared_ptr<BlockWindow> window;
    uint64_t generation;  // of KnownBlocks, when its pages were copied
    std::shared_ptr<DeadlineThreads::Batch> batch;
  };

  bool MayStore() const;
  // Seals and stores parts of the window until none is left. Stops when a flush
  // has begun another generation of KnownBlocks since the pages were copied.
  // Runs in each thread of `putters_`.
  void PutParts(BlockWindow& window, absl::Time used, absl::Time deadline,
                uint64_t generation);
  void EraseForgotten(std::span<const RemoteStore::Transfer> blocks);
  void EndStore(const Sending& sent);
  void Failed(size_t pages, const absl::Status& status);

  RemoteBlocks* const blocks_;
  const absl::Duration put_timeout_;
  const size_t window_blocks_;
  // The window that is being sent, while the next pages are copied to another.
  std::optional<Sending> sending_;
  // Windows to be used again. Each is null before its first use, and after a
  // timeout: then threads may still work on the old one.
  std::shared_ptr<BlockWindow> window_;
  std::shared_ptr<BlockWindow> spare_window_;
  CircuitBreaker breaker_;
  std::atomic<uint64_t> stored_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  DeadlineThreads putters_;  // its threads use all members above
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_STORES_H_
