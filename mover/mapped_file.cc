#include "mover/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pando::mover {

absl::StatusOr<MappedFile> MappedFile::Map(const UniqueFd& fd, uint64_t bytes) {
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("map %u bytes of pandod's memory", bytes));
  }
  MappedFile file({static_cast<std::byte*>(base), bytes});
  // The memory is left out of core dumps, because it holds the KV of prompts.
  if (madvise(base, bytes, MADV_DONTDUMP) != 0) {
    return absl::ErrnoToStatus(errno,
                               "leave pandod's memory out of core dumps");
  }
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace pando::mover
