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

// A file for each block, in a folder that many machines share. A file gets its
// name when it is whole. Its time of modification says when it was last used;
// the owner of the folder removes those that are too old. Owned by
// RemoteBlocks; thread-safe.
class FolderStore final : public RemoteStore {
 public:
  // A block that is there.
  struct Found {
    BlockKey key;  // without its ordinal
    uint64_t bytes = 0;
    absl::Time modified;
  };

  // `digest`: blocks of another one are of another model or shape. The folder,
  // which `option` names, must be there, and no other user may write to it.
  static absl::StatusOr<std::unique_ptr<FolderStore>> Open(
      std::string_view option, const std::string& folder, uint64_t digest);

  // Visits all blocks of the digest, as long as `visit` says so. Removes what
  // writers that were killed have left, and folders that have nothing any more.
  // REQUIRES: no other process uses the folder.
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

  // The things that EraseAll has taken away, and that are left.
  enum class Erased {
    kNone,
    kMore,   // there may be some
    kStuck,  // they cannot be deleted now
  };
  // Deletes some of them, and tells the bytes of each file. What cannot be
  // deleted does not keep the others; it is tried again after the next
  // EraseAll, or start.
  Erased FreeFiles(const std::function<void(uint64_t)>& freed);

 private:
  FolderStore(const std::string& folder, uint64_t digest);

  // Folders are made as they are needed, those of a file from the outside in.
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
  // Names of files that are being written are never those of another process.
  const uint64_t writer_;
  std::atomic<uint64_t> last_written_ = 0;
  // The names of what FreeFiles could not delete since there was nothing to do.
  absl::flat_hash_set<std::string> stuck_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_FOLDER_STORE_H_
