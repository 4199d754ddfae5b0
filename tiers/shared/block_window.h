#ifndef PANDO_TIERS_SHARED_BLOCK_WINDOW_H_
#define PANDO_TIERS_SHARED_BLOCK_WINDOW_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Blocks on their way to or from a store, with the memory of their values.
// Threads take parts of it until nothing is left. Who makes one shares it with
// them, as they may go on after it was given up; if not, it is used again, for
// new memory costs as much as a copy. Thread-safe, but for Begin.
class BlockWindow {
 public:
  BlockWindow(size_t max_blocks, size_t value_bytes);

  // REQUIRES: no thread works on it. Returns blocks, `max_blocks` at most,
  // whose keys are to be set; until their results are set, they have timed out.
  std::span<RemoteStore::Transfer> Begin(size_t count);
  std::span<RemoteStore::Transfer> blocks() { return blocks_; }
  // The next ones that were not taken yet; empty: nothing is left.
  std::span<RemoteStore::Transfer> TakePart();

  // Calls `place` with the number of a block, to put it where it belongs,
  // unless the window was closed; which it is once such a call fails.
  void Place(const RemoteStore::Transfer& block,
             absl::FunctionRef<absl::Status(size_t)> place);
  struct Placed {
    size_t front = 0;     // how many blocks at the front are where they belong
    absl::Status status;  // of the call that failed
  };
  // Waits for such calls, and admits no more.
  Placed Close();

 private:
  const size_t value_bytes_;
  const std::unique_ptr<std::byte[]> values_;
  std::vector<RemoteStore::Transfer> blocks_;
  std::atomic<size_t> taken_ = 0;
  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status place_status_ ABSL_GUARDED_BY(mutex_);
  // Each is written by who has taken the block, who holds the mutex for
  // reading.
  std::vector<char> are_placed_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_BLOCK_WINDOW_H_
