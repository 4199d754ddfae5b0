#include "gpu/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// This is F_SEAL_EXEC of newer headers. The kernel adds this seal if the sysctl
// vm.memfd_noexec is set. It makes no difference to us.
constexpr int kNoExecSeal = 0x20;

// The first byte beyond those of writers. Writers count up from 1, so their
// numbers never come near it.
constexpr off_t kWriterBytes = off_t{1} << 48;

// A lock on the byte of a writer. The byte may be beyond the end of the file.
struct flock LockOf(WriterId writer, int16_t type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(writer.value());
  lock.l_len = 1;
  return lock;
}

// Opens the memory anew, because a duplicated descriptor would share our open
// file description.
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
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot seal %s", name));
  }
  return HostMemory(std::move(name), bytes, std::move(fd));
}

absl::StatusOr<HostMemory> HostMemory::Adopt(std::string name, uint64_t bytes,
                                             UniqueFd fd) {
  struct stat info;
  if ((fcntl(fd.get(), F_GET_SEALS) & ~kNoExecSeal) != kSeals ||
      (fcntl(fd.get(), F_GETFL) & O_ACCMODE) != O_RDWR ||
      fstat(fd.get(), &info) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s cannot be taken over: it is no memory of a pandod", name));
  }
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s cannot be taken over: it has %u bytes, not %u",
                        name, info.st_size, bytes));
  }
  return HostMemory(std::move(name), bytes, std::move(fd));
}

uint64_t HostMemory::id() const {
  struct stat info;
  CHECK(fstat(fd_.get(), &info) == 0);
  return info.st_ino;
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

absl::StatusOr<WriterId> HostMemory::LastWriter() const {
  off_t last = 0;
  while (true) {
    struct flock lock = LockOf(WriterId(0), F_WRLCK);
    lock.l_start = last + 1;
    lock.l_len = 0;  // to the end
    if (fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrFormat("asking %s for locks", name_));
    }
    if (lock.l_type == F_UNLCK) return WriterId(static_cast<uint64_t>(last));
    if (lock.l_len != 1 || lock.l_start >= kWriterBytes) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s cannot be taken over: a process has locked it from byte %d on",
          name_, lock.l_start));
    }
    last = lock.l_start;
  }
}

bool HostMemory::IsHeldByAnyUpTo(WriterId last) const {
  struct flock lock = LockOf(WriterId(1), F_WRLCK);
  lock.l_len = static_cast<off_t>(last.value());
  return last.value() > 0 &&
         (fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK);
}

}  // namespace pando
