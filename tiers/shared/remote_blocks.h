#ifndef PANDO_TIERS_SHARED_REMOTE_BLOCKS_H_
#define PANDO_TIERS_SHARED_REMOTE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/nodes/page_hash.h"
#include "tiers/shared/block_values.h"
#include "tiers/shared/block_window.h"
#include "tiers/shared/known_blocks.h"
#include "tiers/shared/remote_store.h"
#include "tiers/shared/store_eraser.h"

namespace pando {

// The parts that RemoteLoads and RemoteStores share: the store, the form of its
// values, the blocks that are known to be there, and the thread that erases
// flushed ones. Owned by RemoteTier; thread-safe.
class RemoteBlocks {
 public:
  // The number of threads that work on one window.
  static constexpr size_t kWindowThreads = 4;

  RemoteBlocks(BlockValues values, std::unique_ptr<RemoteStore> store)
      : values_(std::move(values)),
        store_(std::move(store)),
        eraser_(store_.get()) {}

  const BlockValues& values() const { return values_; }
  RemoteStore& store() { return *store_; }
  KnownBlocks<PageHash>& known() { return known_; }
  const KnownBlocks<PageHash>& known() const { return known_; }
  StoreEraser& eraser() { return eraser_; }
  const StoreEraser& eraser() const { return eraser_; }

  // Returns how many blocks a window of at most about `window_bytes` bytes
  // holds: from 1 to 32.
  size_t BlocksOf(size_t window_bytes) const;
  std::shared_ptr<BlockWindow> NewWindow(size_t blocks) const;
  // Begins a window of NewWindow anew; see BlockWindow::Begin.
  std::span<RemoteStore::Transfer> Begin(BlockWindow& window,
                                         size_t count) const;
  // Returns the keys of the pages of a prompt from index `begin` on that are
  // not known.
  std::vector<BlockKey> UnknownOf(uint64_t ns_digest,
                                  std::span<const PageHash> prompt,
                                  size_t begin) const;
  // Erases a block in the store. Returns whether that succeeded, and logs an
  // error if not.
  bool Erase(const BlockKey& key);

 private:
  const BlockValues values_;
  const std::unique_ptr<RemoteStore> store_;
  KnownBlocks<PageHash> known_;
  StoreEraser eraser_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_BLOCKS_H_
