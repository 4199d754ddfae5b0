#include "os/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

}  // namespace

absl::Status CheckPrivateFolder(std::string_view option,
                                const std::string& folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("%s: find the folder %s", option, folder));
  }
  if (!S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is '%s', which is no folder", option, folder));
  }
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is '%s', which belongs to user %u; must belong to pandod's user, "
        "%u, or to root",
        option, folder, status.st_uid, geteuid()));
  }
  if ((status.st_mode & kOthersWrite) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is '%s', whose mode is %04o; only its owner may have the right to "
        "write",
        option, folder, status.st_mode & 07777));
  }
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("%s: read and write %s", option, folder));
  }
  return absl::OkStatus();
}

}  // namespace pando
