#ifndef PANDO_TIERS_SHARED_FOLDER_STORE_H_
#define PANDO_TIERS_SHARED_FOLDER_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Keeps blocks as files in a folder, which many machines may share. A file gets
// its name once it is complete. Its modification time says when the block was
// last used; a job of the folder's owner removes files that are too old. Owned
// by RemoteBlocks, SharedBlocks or BlockFiles. Thread-safe, except for
// FreeFiles and FreeSome, which are for one thread.
class FolderStore final : public RemoteStore {
 public:
  // A block that TakeStock has found.
  struct Found {
    BlockKey key;  // without its ordinal
    uint64_t bytes = 0;
    absl::Time modified;
  };

  // `digest` names the model and the shape of the blocks: it selects a
  // subfolder, and blocks under other digests are not found. `option` is the
  // name of the option that gives the folder, for errors. Fails if the folder
  // does not exist, or if other users may write to it.
  static absl::StatusOr<std::unique_ptr<FolderStore>> Open(
      std::string_view option, const std::string& folder, uint64_t digest);

  // Visits all blocks under the digest until `visit` returns false. Removes
  // partly written files of killed writers, and empty folders. REQUIRES: no
  // other process uses the folder.
  void TakeStock(const std::function<bool(const Found&)>& visit) const;

  absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                        absl::Time deadline) override;
  void Get(std::span<Transfer> blocks, absl::Time deadline) override;
  void Put(std::span<Transfer> blocks, absl::Time used,
           absl::Time deadline) override;
  absl::StatusOr<std::vector<bool>> Touch(std::span<const BlockKey> keys,
                                          absl::Time used,
                                          absl::Time deadline) override;
  absl::Status Erase(const BlockKey& key) override;
  absl::Status EraseAll(std::optional<uint64_t> ns_digest) override;
  bool FreeSome() override;

  // Says what is left of the files that EraseAll has taken away.
  enum class Erased {
    kNone,
    kMore,   // there may be more to delete
    kStuck,  // all that are left cannot be deleted now
  };
  // Deletes some files that EraseAll has taken away, also those of earlier
  // processes and of other machines. Calls `freed` with the size of each in
  // bytes. Files that cannot be deleted do not stop the others; a later series
  // of calls tries them again.
  Erased FreeFiles(const std::function<void(uint64_t)>& freed);

 private:
  FolderStore(const std::string& folder, uint64_t digest);

  // The paths of a block's file and of the folders around it, which are made
  // when they are needed, the outermost first.
  struct Place {
    std::string model_folder;
    std::string ns_folder;
    std::string folder;
    std::string file;
  };
  Place PlaceOf(const BlockKey& key) const;
  std::string NsFolder(uint64_t ns_digest) const;
  absl::Status Write(const Place& place, std::span<const std::byte> value,
                     absl::Time modified);

  const std::string folder_;
  const std::string model_folder_;
  // A random number in the names of files that are being written, so that no
  // other process uses the same names.
  const uint64_t writer_;
  std::atomic<uint64_t> last_written_ = 0;
  // The folders that FreeFiles could not delete. It is cleared when FreeFiles
  // finds no other folder to delete.
  absl::flat_hash_set<std::string> stuck_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_FOLDER_STORE_H_
