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

// A set of blocks on their way to or from a store, with the memory of their
// values. Several threads work on it: each takes parts of it until nothing is
// left. It is shared by its maker and these threads, because a thread may go on
// after the maker has given up the wait. If none does, Begin can use the window
// again, because new memory costs as much as a copy. Thread-safe, except for
// Begin and Retain.
class BlockWindow {
 public:
  // `bytes` is the memory of all values.
  explicit BlockWindow(size_t bytes);

  // Begins anew with `count` blocks whose values have `value_bytes` bytes each,
  // and returns them; the caller must set their keys. The status of each is
  // DEADLINE_EXCEEDED until a thread sets it. REQUIRES: the values have room,
  // and no thread works on the window.
  std::span<RemoteStore::Transfer> Begin(size_t count, size_t value_bytes);
  std::span<RemoteStore::Transfer> blocks() { return blocks_; }
  // Takes out blocks: `are_kept` has an entry for each block, false for those
  // that are taken out. REQUIRES: no thread works on the window.
  void Retain(const std::vector<bool>& are_kept);
  // Returns the next blocks that no thread has taken yet; empty if none is
  // left.
  std::span<RemoteStore::Transfer> TakePart();

  // Calls `place` with the index of a block in blocks(), to copy it to its
  // destination; does nothing if the window is closed. The window closes when
  // such a call fails.
  void Place(const RemoteStore::Transfer& block,
             absl::FunctionRef<absl::Status(size_t)> place);
  struct Placed {
    size_t front = 0;     // how many blocks at the front were placed
    absl::Status status;  // of a call of `place` that failed
  };
  // Closes the window: waits for calls of `place` that are under way, and lets
  // no more begin.
  Placed Close();
  // Returns whether a block of blocks() was placed. REQUIRES: the window is
  // closed.
  bool IsPlaced(size_t number) const { return are_placed_[number] != 0; }

 private:
  size_t value_bytes_ = 1;
  const std::unique_ptr<std::byte[]> values_;
  std::vector<RemoteStore::Transfer> blocks_;
  std::atomic<size_t> taken_ = 0;
  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status place_status_ ABSL_GUARDED_BY(mutex_);
  // Each entry is written only by the thread that has taken its block, while
  // that holds the mutex for reading.
  std::vector<char> are_placed_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_BLOCK_WINDOW_H_
