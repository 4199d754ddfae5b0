#ifndef PANDO_SERVICE_TIERS_REMOTE_TIER_H_
#define PANDO_SERVICE_TIERS_REMOTE_TIER_H_

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
#include "service/events/page_hash.h"
#include "service/tiers/block_values.h"
#include "service/tiers/block_window.h"
#include "service/tiers/circuit_breaker.h"
#include "service/tiers/deadline_threads.h"
#include "service/tiers/known_blocks.h"
#include "service/tiers/remote_store.h"
#include "service/tiers/store_eraser.h"
#include "service/tiers/store_target.h"
#include "service/tiers/tier_figures.h"

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
  size_t CountPresent(uint64_t ns_digest, std::span<const PageHash> run);
  // Fills `pages` with the blocks of `run`. Returns how many from the front
  // are what they were when they were stored; the others have any contents.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages);
  // Erases what is stored of a namespace, or being stored; none: of all. Until
  // this is done, nothing is loaded or stored.
  void Forget(std::optional<uint64_t> ns_digest);

  size_t capacity_pages() const override;
  size_t max_pages_per_store() const override { return store_blocks_; }
  size_t CountStored(std::span<const PageHash> run) const override;
  bool TouchIfStored(std::span<const PageHash> prompt) override;
  void BeginPrompt(uint64_t ns_digest,
                   std::span<const PageHash> prompt) override;
  void Store(uint64_t ns_digest, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm) override;
  void EndPrompt() override;
  void CountDropped(uint64_t pages) override { dropped_ += pages; }

  TierFigures figures() const;

 private:
  // A window whose blocks are being stored.
  struct Sending {
    std::shared_ptr<BlockWindow> window;
    uint64_t generation;  // of what was known when it was copied out
    std::shared_ptr<DeadlineThreads::Batch> batch;
  };

  std::shared_ptr<BlockWindow> NewWindow(size_t blocks) const;
  bool MayLoad() const;
  bool MayStore() const;
  size_t LoadWindow(uint64_t ns_digest, std::span<const PageHash> run,
                    std::span<const PageId> pages);
  // What each of the threads does.
  void GetParts(BlockWindow& window, std::span<const PageId> pages,
                absl::Time deadline);
  // `front` pages have been loaded.
  void EndLoad(size_t front);
  // What each of the threads does, for what was copied out in a generation of
  // what is known.
  void PutParts(BlockWindow& window, absl::Time used, absl::Time deadline,
                uint64_t generation);
  void EraseForgotten(std::span<const RemoteStore::Transfer> blocks);
  void EndStore(const Sending& sent);
  // Whether the store has erased the block.
  bool Erase(const BlockKey& key);
  void AskFailed(size_t pages, const absl::Status& status);
  void LoadFailed(size_t front, size_t pages, const absl::Status& status);
  void ReadFailed(size_t pages, const absl::Status& status);
  void StoreFailed(size_t pages, const absl::Status& status);

  const BlockValues values_;
  const std::unique_ptr<RemoteStore> store_;
  const Timeouts timeouts_;
  // Of a window.
  const size_t load_blocks_;
  const size_t store_blocks_;
  // Of the thread that loads. Null before the first use, and after threads were
  // given up in it.
  std::shared_ptr<BlockWindow> load_window_;
  // Of the thread that stores: what is on its way, while the next pages are
  // copied to a second window.
  std::optional<Sending> sending_;
  std::shared_ptr<BlockWindow> store_window_;  // null: as above
  std::shared_ptr<BlockWindow> spare_window_;  // the same
  KnownBlocks known_;
  CircuitBreaker ask_breaker_;
  CircuitBreaker load_breaker_;
  CircuitBreaker store_breaker_;
  std::atomic<uint64_t> stored_ = 0;
  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> failed_reads_ = 0;
  std::atomic<uint64_t> failed_writes_ = 0;
  std::atomic<uint64_t> damaged_ = 0;
  StoreEraser eraser_;
  // They use all of the above.
  DeadlineThreads askers_;
  DeadlineThreads getters_;
  DeadlineThreads putters_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_REMOTE_TIER_H_
