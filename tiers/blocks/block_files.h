#ifndef PANDO_TIERS_BLOCKS_BLOCK_FILES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "tiers/blocks/block_name.h"
#include "tiers/shared/folder_store.h"

namespace pando {

// Blocks as files in the folder of one pandod. A file gets its name once it is
// complete. So after a kill at any time a block is there as a whole or not at
// all; a block that a crash of the machine has torn has another checksum. Owned
// by DiskBlockTier. Thread-safe, except for TakeStock and FreeSome, which are
// for one thread.
class BlockFiles {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;
  };
  struct Found {
    BlockName name;
    uint64_t bytes = 0;
    absl::Time stored;
  };

  // Returns an error if Open would not find the folder, or a place to make it,
  // or if the file system is too small. Changes nothing.
  static absl::Status Check(const Config& config);
  // Makes the folder if it does not exist. Fails if another process uses it,
  // another user owns it, or its file system is smaller than max_bytes.
  static absl::StatusOr<std::unique_ptr<BlockFiles>> Open(const Config& config);

  // Returns how many bytes a file of `bytes` bytes takes on disk.
  static uint64_t BytesOnDisk(uint64_t bytes);

  // Visits the blocks that earlier processes have stored, until `visit` returns
  // false.
  void TakeStock(const std::function<bool(const Found&)>& visit) const;
  // Returns NOT_FOUND if the block is not there, and DATA_LOSS if it has
  // another length.
  absl::Status Read(const BlockName& name, std::span<std::byte> value);
  // After a restart, blocks that were stored at the same time are evicted in
  // the order of their `ordinal`, the highest first.
  absl::Status Write(const BlockName& name, std::span<std::byte> value,
                     uint32_t ordinal);
  // Deletes the file of a block. Returns OK if there is none.
  absl::Status Erase(const BlockName& name);
  // Takes all blocks of a kind away, also for the time after a kill or a crash
  // of the machine. FreeSome deletes their files later.
  absl::Status EraseKind(uint64_t kind) { return store_->EraseAll(kind); }
  struct Freed {
    uint64_t bytes = 0;  // so many were freed, as BytesOnDisk counts them
    bool may_be_more = false;
    bool is_all = false;  // none of these is left, not even an undeletable one
  };
  // Deletes some of the files that EraseKind has taken away.
  Freed FreeSome();

 private:
  BlockFiles(UniqueFd lock, std::unique_ptr<FolderStore> store)
      : lock_(std::move(lock)), store_(std::move(store)) {}

  const UniqueFd lock_;  // keeps other processes from the folder
  const std::unique_ptr<FolderStore> store_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_FILES_H_
