#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"

namespace pando {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::Create(const char* name,
                                                  size_t bytes, Peers peers) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return absl::ErrnoToStatus(errno, "ftruncate of a memfd");
  }
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap of a memfd");
  SharedMemory memory(std::move(fd), static_cast<std::byte*>(data), bytes);
  int seals = kSeals;
  // Our own mapping was made before this seal, so it stays writable.
  if (peers == Peers::kMayRead) seals |= F_SEAL_FUTURE_WRITE;
  if (fcntl(memory.fd_.get(), F_ADD_SEALS, seals) != 0) {
    return absl::ErrnoToStatus(errno, "sealing a memfd");
  }
  return memory;
}

absl::StatusOr<SharedMemory> SharedMemory::Adopt(UniqueFd fd) {
  struct stat info;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &info) != 0) {
    return absl::FailedPreconditionError("it is no memory of a pandod");
  }
  const auto bytes = static_cast<size_t>(info.st_size);
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap of a memfd");
  return SharedMemory(std::move(fd), static_cast<std::byte*>(data), bytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedMemory::Discard(size_t offset) {
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset), static_cast<off_t>(bytes_ - offset));
}

absl::StatusOr<UniqueFd> SharedMemory::Share() const { return Duplicate(fd_); }

absl::StatusOr<UniqueFd> Duplicate(const UniqueFd& fd) {
  UniqueFd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    return absl::ErrnoToStatus(errno, "duplicating a descriptor");
  }
  return copy;
}

}  // namespace pando
