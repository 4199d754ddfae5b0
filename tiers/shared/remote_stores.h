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

// Stores to a shared store: copies pages to one window while another one is on
// its way, and tells the store what is in use. Owned by RemoteTier. One thread
// stores; all else is thread-safe.
class RemoteStores {
 public:
  // `blocks` outlives this. The timeout is that of one window, and of telling
  // what is in use.
  RemoteStores(RemoteBlocks* blocks, absl::Duration put_timeout);

  // As StoreTarget has them.
  size_t max_pages_per_store() const { return window_blocks_; }
  void BeginPrompt(uint64_t ns_digest, std::span<const PageHash> prompt);
  void Store(uint64_t ns_digest, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm);
  void EndPrompt();
  void CountDropped(uint64_t pages) { dropped_ += pages; }
  // Sets those of what is stored.
  void Tell(TierFigures& figures) const;

 private:
  // A window whose blocks are being stored.
  struct Sending {
    std::shared_ptr<BlockWindow> window;
    uint64_t generation;  // of what was known when it was copied out
    std::shared_ptr<DeadlineThreads::Batch> batch;
  };

  bool MayStore() const;
  // Runs in each of the threads, for blocks that were copied out in a
  // generation of the known blocks.
  void PutParts(BlockWindow& window, absl::Time used, absl::Time deadline,
                uint64_t generation);
  void EraseForgotten(std::span<const RemoteStore::Transfer> blocks);
  void EndStore(const Sending& sent);
  void Failed(size_t pages, const absl::Status& status);

  RemoteBlocks* const blocks_;
  const absl::Duration put_timeout_;
  const size_t window_blocks_;
  // The blocks on their way, while the next pages are copied to a second
  // window.
  std::optional<Sending> sending_;
  // Null before the first use, and after threads were given up in it.
  std::shared_ptr<BlockWindow> window_;
  std::shared_ptr<BlockWindow> spare_window_;  // the same
  CircuitBreaker breaker_;
  std::atomic<uint64_t> stored_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  DeadlineThreads putters_;  // use all of the above
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_STORES_H_
