#include "tiers/shared/deleted_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/unique_fd.h"

namespace pando {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

class Deletion {
 public:
  Deletion(size_t most, const std::function<void(uint64_t)>& deleted)
      : left_(most), deleted_(deleted) {}

  // Returns whether the folder is gone. If not, there is more to delete, or
  // there was an error.
  bool DeleteFolder(int parent, const char* name) {
    UniqueFd fd(
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return IsGone();
    const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(fd.get()));
    if (folder == nullptr) return IsGone();
    fd.release();  // the folder's now
    while (const dirent* const entry = readdir(folder.get())) {
      const std::string_view entry_name = entry->d_name;
      if (entry_name == "." || entry_name == "..") continue;
      if (left_ == 0) return false;
      DeleteEntry(dirfd(folder.get()), entry->d_name);
    }
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || IsGone();
  }

  bool has_more() const { return left_ == 0; }
  int error() const { return error_; }

 private:
  void DeleteEntry(int folder, const char* name) {
    struct stat status;
    const bool is_there =
        fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISDIR(status.st_mode)) {
      DeleteFolder(folder, name);
    } else if (is_there && unlinkat(folder, name, 0) == 0) {
      deleted_(static_cast<uint64_t>(status.st_size));
      --left_;
    } else {
      IsGone();
    }
  }
  // Looks at errno after a call that failed. Returns whether the file was gone
  // already, as when another process deletes the same folder; else remembers
  // the error.
  bool IsGone() {
    if (errno == ENOENT) return true;
    error_ = errno;
    return false;
  }

  size_t left_;
  const std::function<void(uint64_t)>& deleted_;
  int error_ = 0;
};

}  // namespace

absl::StatusOr<bool> DeleteSome(const std::string& folder, size_t most,
                                const std::function<void(uint64_t)>& deleted) {
  Deletion deletion(most, deleted);
  if (deletion.DeleteFolder(AT_FDCWD, folder.c_str())) return true;
  if (deletion.has_more()) return false;
  return absl::ErrnoToStatus(deletion.error(), "delete erased files");
}

}  // namespace pando
