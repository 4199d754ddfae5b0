#ifndef PANDO_SERVICE_SECURITY_FILE_VERSION_H_
#define PANDO_SERVICE_SECURITY_FILE_VERSION_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace pando {

// By which it is noticed that a file has changed.
struct FileVersion {
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileVersion&) const = default;
};

// Of the file at `path` now; one that no file has: there is none.
FileVersion VersionOf(const std::string& path);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_FILE_VERSION_H_
