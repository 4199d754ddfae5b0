#ifndef PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "tiers/blocks/absent_blocks.h"
#include "tiers/blocks/block_name.h"
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

  // Returns the status of a call that took too long.
  static absl::Status Timeout() {
    return absl::DeadlineExceededError("timeout");
  }
  // Returns the key of a block in the store. Blocks further back in a prompt
  // have higher ordinals.
  static BlockKey KeyOf(const BlockName& name, uint32_t ordinal = 0) {
    return {.ns_digest = name.kind, .hash = name.key, .ordinal = ordinal};
  }

  RemoteStore& store() { return *store_; }
  const BlockSeal& seal() const { return seal_; }
  KnownBlocks<BlockName>& known() { return known_; }
  AbsentBlocks& absent() { return absent_; }
  // Returns whether a kind is being erased. Nothing is loaded or stored
  // meanwhile.
  bool is_erasing() const { return eraser_.is_erasing(); }

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
  StoreEraser eraser_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_BLOCKS_H_
