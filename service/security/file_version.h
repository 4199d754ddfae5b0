#ifndef PANDO_SERVICE_SECURITY_FILE_VERSION_H_
#define PANDO_SERVICE_SECURITY_FILE_VERSION_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace pando {

// Tells whether a file has changed: its version differs between any two states.
struct FileVersion {
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileVersion&) const = default;
};

// Returns the version of the file at `path` now. If there is no file, it
// returns a default one, which no file has.
FileVersion VersionOf(const std::string& path);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_FILE_VERSION_H_
