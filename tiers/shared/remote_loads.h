#ifndef PANDO_TIERS_SHARED_REMOTE_LOADS_H_
#define PANDO_TIERS_SHARED_REMOTE_LOADS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// Loads pages from a shared store: asks which blocks are there, gets them, and
// verifies them. Owned by RemoteTier. CountPresent and Load are each for one
// thread, and may run at the same time; Tell is thread-safe.
class RemoteLoads {
 public:
  // `blocks` must outlive this object. `ask_timeout` limits one question,
  // `get_timeout` the load of one window.
  RemoteLoads(RemoteBlocks* blocks, absl::Duration ask_timeout,
              absl::Duration get_timeout);

  // Returns how many blocks at the front of `run` the store says it has; 0 if
  // it fails or is not asked for a while.
  size_t CountPresent(uint64_t ns_digest, std::span<const PageHash> run);
  // Fills `pages` with the blocks of `run`. Returns how many pages from the
  // front now hold what was stored; the contents of the others are undefined.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages);
  // Sets the figures that concern loads.
  void Tell(TierFigures& figures) const;

 private:
  bool MayLoad() const;
  size_t LoadWindow(uint64_t ns_digest, std::span<const PageHash> run,
                    std::span<const PageId> pages);
  // Gets parts of the window until none is left, verifies the blocks and fills
  // the pages. Runs in each thread of `getters_`.
  void GetParts(BlockWindow& window, std::span<const PageId> pages,
                absl::Time deadline);
  // Counts the errors of a window that was done in time and filled `front`
  // pages.
  void EndLoad(size_t front);
  void AskFailed(size_t pages, const absl::Status& status);
  void LoadFailed(size_t front, size_t pages, const absl::Status& status);
  void ReadFailed(size_t pages, const absl::Status& status);

  RemoteBlocks* const blocks_;
  const absl::Duration ask_timeout_;
  const absl::Duration get_timeout_;
  const size_t window_blocks_;
  // The window of the loading thread, which is used again. It is null before
  // the first load, and after a timeout: then the threads may still work on the
  // old window.
  std::shared_ptr<BlockWindow> window_;
  CircuitBreaker ask_breaker_;
  CircuitBreaker load_breaker_;
  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  std::atomic<uint64_t> damaged_ = 0;
  // The members above outlive these threads, which use them.
  DeadlineThreads askers_;
  DeadlineThreads getters_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_LOADS_H_
