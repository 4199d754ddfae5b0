#include "tiers/shared/folder_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/private_folder.h"
#include "os/random_id.h"
#include "tiers/shared/deleted_folder.h"

namespace pando {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kBlockMode = 0600;
constexpr mode_t kBlockFolderMode = 0700;
// EraseAll renames a folder to this prefix and a random number.
constexpr std::string_view kErasedPrefix = "erased-";

// One call of FreeFiles deletes at most so many files, so that a flush or a
// store waits for no more than that.
constexpr size_t kFilesAtOnce = 64;

absl::Status Late() {
  return absl::DeadlineExceededError("the shared folder is slow");
}

// Blocks further back in a prompt count as used earlier, so that they are
// removed first.
absl::Time ModifiedOf(const BlockKey& key, absl::Time used) {
  return used - absl::Milliseconds(key.ordinal);
}

absl::Status Read(const std::string& path, std::span<std::byte> value) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "open a block");
  struct stat status;
  if (fstat(file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, "ask for the size of a block");
  }
  if (!S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) != value.size()) {
    return absl::DataLossError("its length differs");
  }
  size_t got = 0;
  while (got < value.size()) {
    const ssize_t bytes = pread(file.get(), value.data() + got,
                                value.size() - got, static_cast<off_t>(got));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return absl::ErrnoToStatus(errno, "read a block");
    if (bytes == 0) return absl::DataLossError("its length differs");
    got += static_cast<size_t>(bytes);
  }
  return absl::OkStatus();
}

bool IsFolder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return !entry.is_symlink(ignored) && entry.is_directory(ignored);
}

// Returns whether EraseAll, on any machine, has taken this folder away.
bool IsErased(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().native();
  return IsFolder(entry) && name.starts_with(kErasedPrefix) &&
         name.size() == kErasedPrefix.size() + 16 &&
         std::ranges::all_of(name.substr(kErasedPrefix.size()),
                             absl::ascii_isxdigit);
}

// Makes renames in a folder survive a crash of the machine.
absl::Status Sync(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return errno == ENOENT ? absl::OkStatus()
                           : absl::ErrnoToStatus(errno, "open a folder");
  }
  // Some file systems cannot sync a folder.
  if (fsync(fd.get()) == 0 || errno == EINVAL) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "sync a folder");
}

// Fills a file that was just made. It checks close(), because some network file
// systems report only there what the server has not taken.
absl::Status Fill(UniqueFd file, std::span<const std::byte> value,
                  absl::Time modified) {
  size_t put = 0;
  while (put < value.size()) {
    const ssize_t bytes = pwrite(file.get(), value.data() + put,
                                 value.size() - put, static_cast<off_t>(put));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return absl::ErrnoToStatus(errno, "write a block");
    put += static_cast<size_t>(bytes);
  }
  const timespec time = absl::ToTimespec(modified);
  const timespec times[] = {time, time};
  if (futimens(file.get(), times) != 0) {
    return absl::ErrnoToStatus(errno, "set the time of a block");
  }
  if (close(file.release()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "close a block");
}

// Returns none if the file is no block.
std::optional<FolderStore::Found> FoundAt(const std::string& ns_folder,
                                          const fs::path& file) {
  FolderStore::Found found;
  const std::string name = file.filename().native();
  struct stat status;
  if (ns_folder.size() != 16 ||
      !absl::SimpleHexAtoi(ns_folder, &found.key.ns_digest) ||
      name.size() != 2 * found.key.hash.size() ||
      !std::ranges::all_of(name, absl::ascii_isxdigit) ||
      lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  const std::string hash = absl::HexStringToBytes(name);
  std::memcpy(found.key.hash.data(), hash.data(), hash.size());
  found.bytes = static_cast<uint64_t>(status.st_size);
  found.modified = absl::TimeFromTimespec(status.st_mtim);
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FolderStore>> FolderStore::Open(
    std::string_view option, const std::string& folder, uint64_t digest) {
  RETURN_IF_ERROR(CheckPrivateFolder(option, folder));
  return absl::WrapUnique(new FolderStore(folder, digest));
}

FolderStore::FolderStore(const std::string& folder, uint64_t digest)
    : folder_(folder),
      model_folder_(absl::StrFormat("%s/%016x", folder, digest)),
      writer_(RandomId()) {}

std::string FolderStore::NsFolder(uint64_t ns_digest) const {
  return absl::StrFormat("%s/%016x", model_folder_, ns_digest);
}

FolderStore::Place FolderStore::PlaceOf(const BlockKey& key) const {
  const std::string name = absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(key.hash.data()), key.hash.size()));
  const std::string ns_folder = NsFolder(key.ns_digest);
  // So that no folder has too many files.
  const std::string folder = absl::StrCat(ns_folder, "/", name.substr(0, 2));
  return {model_folder_, ns_folder, folder, absl::StrCat(folder, "/", name)};
}

void FolderStore::TakeStock(
    const std::function<bool(const Found&)>& visit) const {
  const auto for_each = [](const fs::path& folder, auto&& use) {
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      entries.push_back(it->path());
    }
    for (const fs::path& entry : entries) {
      if (!use(entry)) return false;
    }
    // This fails if something is left in the folder, as it should.
    rmdir(folder.c_str());
    return true;
  };
  for_each(model_folder_, [&](const fs::path& ns) {
    return for_each(ns, [&](const fs::path& part) {
      return for_each(part, [&](const fs::path& file) {
        if (file.filename().native().starts_with('.')) {
          unlink(file.c_str());
          return true;
        }
        const std::optional<Found> found =
            FoundAt(ns.filename().native(), file);
        return !found.has_value() || visit(*found);
      });
    });
  });
}

absl::StatusOr<RemoteStore::Presence> FolderStore::CountPresent(
    std::span<const BlockKey> keys, absl::Time deadline) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (MonotonicNow() >= deadline) return Presence{.blocks = i};
    if (access(PlaceOf(keys[i]).file.c_str(), R_OK) == 0) continue;
    if (errno == ENOENT) return Presence{.blocks = i, .lacks_next = true};
    return absl::ErrnoToStatus(errno, "look for a block");
  }
  return Presence{.blocks = keys.size()};
}

void FolderStore::Get(std::span<Transfer> blocks, absl::Time deadline) {
  for (Transfer& block : blocks) {
    block.status = MonotonicNow() < deadline
                       ? Read(PlaceOf(block.key).file, block.value)
                       : Late();
  }
}

void FolderStore::Put(std::span<Transfer> blocks, absl::Time used,
                      absl::Time deadline) {
  for (Transfer& block : blocks) {
    block.status = MonotonicNow() < deadline
                       ? Write(PlaceOf(block.key), block.value,
                               ModifiedOf(block.key, used))
                       : Late();
  }
}

absl::Status FolderStore::Write(const Place& place,
                                std::span<const std::byte> value,
                                absl::Time modified) {
  const std::string path =
      absl::StrFormat("%s/.%016x-%u", place.folder, writer_, ++last_written_);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd file(open(path.c_str(), kFlags, kBlockMode));
  if (!file.valid() && errno == ENOENT) {
    // Errors are not checked: if this fails, the open below fails, too.
    for (const std::string& folder :
         {place.model_folder, place.ns_folder, place.folder}) {
      mkdir(folder.c_str(), kBlockFolderMode);
    }
    file = UniqueFd(open(path.c_str(), kFlags, kBlockMode));
  }
  if (!file.valid()) return absl::ErrnoToStatus(errno, "make a block");
  absl::Status written = Fill(std::move(file), value, modified);
  if (written.ok() && rename(path.c_str(), place.file.c_str()) != 0) {
    written = absl::ErrnoToStatus(errno, "name a block");
  }
  if (!written.ok()) unlink(path.c_str());
  return written;
}

absl::StatusOr<std::vector<bool>> FolderStore::Touch(
    std::span<const BlockKey> keys, absl::Time used, absl::Time deadline) {
  std::vector<bool> are_present(keys.size());
  for (size_t i = 0; i < keys.size() && MonotonicNow() < deadline; ++i) {
    const timespec time = absl::ToTimespec(ModifiedOf(keys[i], used));
    const timespec times[] = {time, time};
    are_present[i] = utimensat(AT_FDCWD, PlaceOf(keys[i]).file.c_str(), times,
                               AT_SYMLINK_NOFOLLOW) == 0;
    if (!are_present[i] && errno != ENOENT) {
      return absl::ErrnoToStatus(errno, "touch a block");
    }
  }
  return are_present;
}

absl::Status FolderStore::Erase(const BlockKey& key) {
  if (unlink(PlaceOf(key).file.c_str()) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "erase a block");
}

// Renames the folder, so that its blocks are gone for all machines at once,
// also after a crash of this machine. FreeFiles deletes them later.
absl::Status FolderStore::EraseAll(std::optional<uint64_t> ns_digest) {
  const std::string folder =
      ns_digest.has_value() ? NsFolder(*ns_digest) : model_folder_;
  const std::string erased =
      absl::StrFormat("%s/%s%016x", folder_, kErasedPrefix, RandomId());
  if (rename(folder.c_str(), erased.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, "erase blocks");
  }
  if (ns_digest.has_value()) RETURN_IF_ERROR(Sync(model_folder_));
  return Sync(folder_);
}

bool FolderStore::FreeSome() {
  return FreeFiles([](uint64_t) {}) == Erased::kMore;
}

FolderStore::Erased FolderStore::FreeFiles(
    const std::function<void(uint64_t)>& freed) {
  Erased left = Erased::kNone;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    if (!IsErased(*it)) continue;
    const std::string folder = it->path().native();
    left = Erased::kStuck;
    if (stuck_.contains(folder)) continue;
    const absl::StatusOr<bool> is_gone =
        DeleteSome(folder, kFilesAtOnce, freed);
    if (is_gone.ok()) return Erased::kMore;
    stuck_.insert(folder);
    Log(LogLevel::kWarning, "flushed files are still in the shared folder",
        {{"folder", folder}, {"error", is_gone.status().message()}});
    return Erased::kMore;
  }
  stuck_.clear();
  return left;
}

}  // namespace pando
