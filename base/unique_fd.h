#ifndef PANDO_BASE_UNIQUE_FD_H_
#define PANDO_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace pando {

// Owns one file descriptor and closes it. Movable; as thread-safe as an int.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (valid()) close(fd_);
  }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Gives up ownership: the caller closes it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace pando

#endif  // PANDO_BASE_UNIQUE_FD_H_
