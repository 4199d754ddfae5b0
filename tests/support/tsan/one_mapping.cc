// Maps memory only once when two parts of one process share it. The sanitizer
// knows memory by its address, so it sees what both ends of a lane do with the
// memory only if they use the same address (see CMakeLists.txt).

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <vector>

extern "C" {

void* __real_mmap(void* address, size_t bytes, int protection, int flags,
                  int fd, off_t offset);
int __real_munmap(void* address, size_t bytes);

}  // extern "C"

namespace {

// A file that is mapped as a whole and shared.
struct Mapping {
  dev_t device;
  ino_t inode;
  size_t bytes;
  int protection;
  void* address;
  int users;
};

std::mutex mutex;
std::vector<Mapping>& Mappings() {
  static auto* const mappings = new std::vector<Mapping>;
  return *mappings;
}

}  // namespace

extern "C" {

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags,
                  int fd, off_t offset) {
  struct stat file = {};
  if (flags != MAP_SHARED || address != nullptr || offset != 0 ||
      fstat(fd, &file) != 0) {
    return __real_mmap(address, bytes, protection, flags, fd, offset);
  }
  const std::lock_guard hold(mutex);
  for (Mapping& mapping : Mappings()) {
    if (mapping.device == file.st_dev && mapping.inode == file.st_ino &&
        mapping.bytes == bytes && mapping.protection == protection) {
      ++mapping.users;
      return mapping.address;
    }
  }
  void* const made = __real_mmap(address, bytes, protection, flags, fd, offset);
  if (made != MAP_FAILED) {
    Mappings().push_back(
        {file.st_dev, file.st_ino, bytes, protection, made, /*users=*/1});
  }
  return made;
}

int __wrap_munmap(void* address, size_t bytes) {
  const std::lock_guard hold(mutex);
  const auto found = std::find_if(
      Mappings().begin(), Mappings().end(),
      [&](const Mapping& each) { return each.address == address; });
  if (found == Mappings().end()) return __real_munmap(address, bytes);
  if (--found->users > 0) return 0;
  Mappings().erase(found);
  return __real_munmap(address, bytes);
}

}  // extern "C"
