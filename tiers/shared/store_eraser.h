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

// On a thread of its own, erases flushed and reset blocks from a store, and
// then frees the room that they take. It tries until it succeeds. Owned by
// RemoteBlocks or SharedBlocks; thread-safe. The destructor tries each waiting
// erasure once more, until one fails, and leaves the rest of the room to the
// next process to free.
class StoreEraser {
 public:
  // `store` must outlive this object.
  explicit StoreEraser(RemoteStore* store);
  ~StoreEraser();
  StoreEraser(const StoreEraser&) = delete;
  StoreEraser& operator=(const StoreEraser&) = delete;

  // Queues the erasure of a namespace, or of all namespaces with none. When
  // very many wait, all is erased.
  void Erase(std::optional<uint64_t> ns_digest);
  // Returns whether an erasure is queued or under way.
  bool is_erasing() const;
  // Returns whether an erasure of this namespace, or of all, is queued or under
  // way.
  bool IsErasing(uint64_t ns_digest) const;

 private:
  void Run();
  // Tries the first erasure. Returns false if there is none.
  bool EraseNext();
  // Erases the blocks in the store. Returns whether that succeeded.
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
