#include "gpu/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando {
namespace {

// One byte for each writer; it need not be within the file.
struct flock LockOf(WriterId writer, int16_t type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(writer.value());
  lock.l_len = 1;
  return lock;
}

// Opened anew, because a duplicate would be the same open file as ours.
absl::StatusOr<UniqueFd> Reopened(const UniqueFd& fd, const std::string& name) {
  const std::string path = absl::StrFormat("/proc/self/fd/%d", fd.get());
  UniqueFd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.valid()) {
    return absl::ErrnoToStatus(errno,
                               absl::StrFormat("cannot open %s again", name));
  }
  return opened;
}

}  // namespace

absl::StatusOr<HostMemory> HostMemory::Create(std::string name,
                                              uint64_t bytes) {
  UniqueFd fd(memfd_create("pando-kv", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("cannot size %s to %u bytes", name, bytes));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
      0) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot seal %s", name));
  }
  return HostMemory(std::move(name), bytes, std::move(fd));
}

absl::StatusOr<UniqueFd> HostMemory::Export() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("cannot duplicate the descriptor of %s", name_));
  }
  return fd;
}

absl::StatusOr<UniqueFd> HostMemory::ExportTo(WriterId writer) const {
  ASSIGN_OR_RETURN(UniqueFd fd, Reopened(fd_, name_));
  struct flock lock = LockOf(writer, F_RDLCK);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s cannot be locked for a writer: %s", name_, std::strerror(errno)));
  }
  return fd;
}

bool HostMemory::IsHeldBy(WriterId writer) const {
  struct flock lock = LockOf(writer, F_WRLCK);
  return fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace pando
