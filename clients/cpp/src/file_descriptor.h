#ifndef PANDO_CLIENTS_CPP_SRC_FILE_DESCRIPTOR_H_
#define PANDO_CLIENTS_CPP_SRC_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace pando {
inline namespace client {

// Owns one descriptor and closes it. Move-only, thread-compatible.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_FILE_DESCRIPTOR_H_
