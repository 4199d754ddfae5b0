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

// Loads from a shared store: asks it what is there, and fills pages with what
// it gives and is verified. Owned by RemoteTier. One thread asks, one loads, at
// the same time; all else is thread-safe.
class RemoteLoads {
 public:
  // `blocks` outlives this. The timeouts are those of one question, and of the
  // load of one window.
  RemoteLoads(RemoteBlocks* blocks, absl::Duration ask_timeout,
              absl::Duration get_timeout);

  // How many blocks at the front of `run` the store says it has.
  size_t CountPresent(uint64_t ns_digest, std::span<const PageHash> run);
  // Fills `pages` with the blocks of `run`. Returns how many from the front
  // are what they were when they were stored; the others have any contents.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages);
  // Sets those of what is loaded.
  void Tell(TierFigures& figures) const;

 private:
  bool MayLoad() const;
  size_t LoadWindow(uint64_t ns_digest, std::span<const PageHash> run,
                    std::span<const PageId> pages);
  // Runs in each of the threads.
  void GetParts(BlockWindow& window, std::span<const PageId> pages,
                absl::Time deadline);
  // `front` pages have been loaded.
  void EndLoad(size_t front);
  void AskFailed(size_t pages, const absl::Status& status);
  void LoadFailed(size_t front, size_t pages, const absl::Status& status);
  void ReadFailed(size_t pages, const absl::Status& status);

  RemoteBlocks* const blocks_;
  const absl::Duration ask_timeout_;
  const absl::Duration get_timeout_;
  const size_t window_blocks_;
  // The window of the thread that loads. Null before the first use, and after
  // threads were given up in it.
  std::shared_ptr<BlockWindow> window_;
  CircuitBreaker ask_breaker_;
  CircuitBreaker load_breaker_;
  std::atomic<uint64_t> loaded_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  std::atomic<uint64_t> damaged_ = 0;
  // They use all of the above.
  DeadlineThreads askers_;
  DeadlineThreads getters_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_LOADS_H_
