#include "tiers/local/file_calls.h"

#include <unistd.h>

#include <cerrno>

namespace pando {

absl::Status ReadAll(int fd, void* to, size_t bytes, off_t offset) {
  while (bytes > 0) {
    const ssize_t got = pread(fd, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "read from the disk tier");
    if (got == 0) return absl::DataLossError("a file of the disk tier ends");
    to = static_cast<std::byte*>(to) + got;
    bytes -= static_cast<size_t>(got);
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, const void* from, size_t bytes, off_t offset) {
  while (bytes > 0) {
    const ssize_t put = pwrite(fd, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, "write to the disk tier");
    from = static_cast<const std::byte*>(from) + put;
    bytes -= static_cast<size_t>(put);
    offset += put;
  }
  return absl::OkStatus();
}

}  // namespace pando
