#include "tiers/blocks/block_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "os/private_folder.h"
#include "tiers/blocks/sealed_block.h"

namespace pando {
namespace {

constexpr const char* kOption = "block-tier-disk";
constexpr uint64_t kFileSystemBlock = 4096;
constexpr mode_t kBlockTierFolderMode = 0700;
constexpr mode_t kBlockTierLockMode = 0600;

// `in` is the folder, or the folder in which it is to be made.
absl::Status CheckFits(const BlockFiles::Config& config,
                       const std::string& in) {
  struct statvfs disk;
  if (statvfs(in.c_str(), &disk) != 0) {
    return absl::ErrnoToStatus(errno, "ask for the size of " + in);
  }
  const uint64_t bytes = uint64_t{disk.f_blocks} * disk.f_frsize;
  if (config.max_bytes <= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "block-tier-disk-bytes is %u; the file system of %s has %u",
      config.max_bytes, config.folder, bytes));
}

BlockKey KeyOf(const BlockName& name, uint32_t ordinal = 0) {
  return {.ns_digest = name.kind, .hash = name.key, .ordinal = ordinal};
}

}  // namespace

absl::Status BlockFiles::Check(const Config& config) {
  if (access(config.folder.c_str(), F_OK) == 0) {
    RETURN_IF_ERROR(CheckPrivateFolder(kOption, config.folder));
    return CheckFits(config, config.folder);
  }
  const std::string parent =
      std::filesystem::absolute(config.folder).parent_path();
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(
        errno, "block-tier-disk: make the folder " + config.folder);
  }
  return CheckFits(config, parent);
}

absl::StatusOr<std::unique_ptr<BlockFiles>> BlockFiles::Open(
    const Config& config) {
  const std::string& folder = config.folder;
  if (mkdir(folder.c_str(), kBlockTierFolderMode) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno,
                               "block-tier-disk: make the folder " + folder);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FolderStore> store,
                   FolderStore::Open(kOption, folder, kFormOfBlocks));
  RETURN_IF_ERROR(CheckFits(config, folder));
  UniqueFd lock(open((folder + "/lock").c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                     kBlockTierLockMode));
  if (!lock.valid()) {
    return absl::ErrnoToStatus(errno, "block-tier-disk: open its lock");
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "block-tier-disk is '", folder, "', which another pandod uses"));
  }
  return absl::WrapUnique(new BlockFiles(std::move(lock), std::move(store)));
}

uint64_t BlockFiles::BytesOnDisk(uint64_t bytes) {
  return (bytes + kFileSystemBlock - 1) / kFileSystemBlock * kFileSystemBlock;
}

void BlockFiles::TakeStock(
    const std::function<bool(const Found&)>& visit) const {
  store_->TakeStock([&](const FolderStore::Found& found) {
    return visit({.name = {found.key.ns_digest, found.key.hash},
                  .bytes = BytesOnDisk(found.bytes),
                  .stored = found.modified});
  });
}

absl::Status BlockFiles::Read(const BlockName& name,
                              std::span<std::byte> value) {
  RemoteStore::Transfer block = {
      .key = KeyOf(name), .value = value, .status = {}};
  store_->Get({&block, 1}, absl::InfiniteFuture());
  return block.status;
}

absl::Status BlockFiles::Write(const BlockName& name,
                               std::span<std::byte> value, uint32_t ordinal) {
  RemoteStore::Transfer block = {
      .key = KeyOf(name, ordinal), .value = value, .status = {}};
  store_->Put({&block, 1}, absl::Now(), absl::InfiniteFuture());
  return block.status;
}

absl::Status BlockFiles::Erase(const BlockName& name) {
  return store_->Erase(KeyOf(name));
}

BlockFiles::Freed BlockFiles::FreeSome() {
  Freed freed;
  const auto found = store_->FreeFiles(
      [&](uint64_t bytes) { freed.bytes += BytesOnDisk(bytes); });
  freed.may_be_more = found == FolderStore::Erased::kMore;
  freed.is_all = found == FolderStore::Erased::kNone;
  return freed;
}

}  // namespace pando
