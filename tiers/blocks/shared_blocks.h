#ifndef PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tiers/blocks/absent_blocks.h"
#include "tiers/blocks/block_name.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/sealed_block.h"
#include "tiers/shared/known_blocks.h"
#include "tiers/shared/remote_store.h"
#include "tiers/shared/store_eraser.h"

namespace pando {

// The parts that SharedAsks, SharedSource and SharedStores have in common: the
// store of blocks that machines share, the form of its values, the blocks that
// are known to be there or not to be there, and the thread that erases reset
// kinds. Owned by SharedBlockTier; thread-safe.
class SharedBlocks {
 public:
  // The number of threads that get, or put, blocks at the same time.
  static constexpr size_t kCopyThreads = 4;

  SharedBlocks(std::unique_ptr<RemoteStore> store,
               std::unique_ptr<SharedKey> secret)
      : store_(std::move(store)),
        seal_(std::move(secret)),
        eraser_(store_.get()) {}

  // Returns the key of a block in the store. Of blocks that are stored or
  // touched together, those further back in the prompt have higher ordinals.
  static BlockKey KeyOf(const BlockName& name, uint32_t ordinal = 0) {
    return {.ns_digest = name.kind, .hash = name.key, .ordinal = ordinal};
  }

  RemoteStore& store() { return *store_; }
  const BlockSeal& seal() const { return seal_; }
  KnownBlocks<BlockName>& known() { return known_; }
  AbsentBlocks& absent() { return absent_; }
  // Notes blocks that the store does not have.
  void NoteAbsent(std::span<const BlockName> names) {
    known_.Remove(names);
    absent_.Add(names);
  }

  // A thread has a Put while it stores blocks of a kind. After it has made the
  // Put, it must check whether the kind was replaced. If so, it must erase the
  // blocks that it stored before it destroys the Put.
  class Put;
  // Returns whether the store may have blocks of earlier generations of a kind.
  // It may while the kind is being erased, and while a thread stores blocks of
  // an earlier generation. Nothing of the kind is loaded or stored meanwhile.
  bool MayHaveReplaced(const KnownKind& kind) const;

  // Begins to erase all blocks of a kind.
  void EraseKind(uint64_t kind) {
    known_.Forget();
    eraser_.Erase(kind);
  }
  // Erases a block in the store. Returns whether that succeeded, and logs an
  // error if not.
  bool Erase(const BlockName& name);

 private:
  const std::unique_ptr<RemoteStore> store_;
  const BlockSeal seal_;
  KnownBlocks<BlockName> known_;
  AbsentBlocks absent_;
  mutable absl::Mutex mutex_;
  // The kinds of which blocks are being stored; one entry for each thread.
  std::vector<const KnownKind*> being_put_ ABSL_GUARDED_BY(mutex_);
  StoreEraser eraser_;
};

class SharedBlocks::Put {
 public:
  Put(SharedBlocks* shared, const KnownKind* kind)
      : shared_(shared), kind_(kind) {
    absl::MutexLock hold(&shared_->mutex_);
    shared_->being_put_.push_back(kind_);
  }
  ~Put() {
    absl::MutexLock hold(&shared_->mutex_);
    shared_->being_put_.erase(std::ranges::find(shared_->being_put_, kind_));
  }
  Put(const Put&) = delete;
  Put& operator=(const Put&) = delete;

 private:
  SharedBlocks* const shared_;
  const KnownKind* const kind_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_
