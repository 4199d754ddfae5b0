#include "service/security/file_version.h"

#include <sys/stat.h>

namespace pando {

FileVersion VersionOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {.inode = ~ino_t{0}};
  return {.inode = info.st_ino,
          .size = info.st_size,
          .changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 +
                        info.st_ctim.tv_nsec};
}

}  // namespace pando
