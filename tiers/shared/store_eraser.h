#ifndef PANDO_TIERS_SHARED_STORE_ERASER_H_
#define PANDO_TIERS_SHARED_STORE_ERASER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Erases what is flushed from a store, on a thread of its own, as often as it
// takes, and then frees the room of it. Owned by RemoteBlocks; thread-safe. Its
// destructor waits for what is being erased, and leaves the rest of what is to
// be freed to the next process.
class StoreEraser {
 public:
  // `store` outlives it.
  explicit StoreEraser(RemoteStore* store);
  ~StoreEraser();
  StoreEraser(const StoreEraser&) = delete;
  StoreEraser& operator=(const StoreEraser&) = delete;

  // All of a namespace; none: of all.
  void Erase(std::optional<uint64_t> ns_digest);
  bool is_erasing() const;

 private:
  void Run();
  // False: there is nothing to be erased.
  bool EraseNext();
  // Whether it succeeded.
  bool EraseNow(std::optional<uint64_t> ns_digest);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !waiting_.empty();
  }

  RemoteStore* const store_;
  mutable absl::Mutex mutex_;
  std::deque<std::optional<uint64_t>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_ERASER_H_
