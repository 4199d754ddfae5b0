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

// Blocks in the folder of one pandod, a file for each, which has its name once
// it is whole. So after a kill at any time a block is there or not; what a
// crash of the machine tears has another checksum. Owned by BlockTier;
// thread-safe, but for TakeStock.
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

  // Whether Open would find its folder, or the place to make it. Changes
  // nothing.
  static absl::Status Check(const Config& config);
  // Makes the folder where it does not exist. Fails when another process uses
  // it, another user owns it, or its file system is smaller than max_bytes.
  static absl::StatusOr<std::unique_ptr<BlockFiles>> Open(const Config& config);

  // The bytes that a file of so many takes.
  static uint64_t BytesOnDisk(uint64_t bytes);

  // Visits what earlier processes have stored, as long as `visit` says so.
  void TakeStock(const std::function<bool(const Found&)>& visit) const;
  // NotFound: it is not there. DataLoss: it has another length.
  absl::Status Read(const BlockName& name, std::span<std::byte> value);
  // Blocks that are stored with a higher `ordinal` go first after a restart.
  absl::Status Write(const BlockName& name, std::span<std::byte> value,
                     uint32_t ordinal);
  absl::Status Erase(const BlockName& name);
  // Nothing of the kind is there any more, also after a kill, or a crash of the
  // machine.
  absl::Status EraseKind(uint64_t kind) { return store_->EraseAll(kind); }
  struct Freed {
    uint64_t bytes = 0;  // as BytesOnDisk counts them
    bool may_be_more = false;
    bool is_all = false;  // nothing is left, not even what cannot be deleted
  };
  // Deletes some of what EraseKind has taken away.
  Freed FreeSome();

 private:
  BlockFiles(UniqueFd lock, std::unique_ptr<FolderStore> store)
      : lock_(std::move(lock)), store_(std::move(store)) {}

  const UniqueFd lock_;
  const std::unique_ptr<FolderStore> store_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_FILES_H_
