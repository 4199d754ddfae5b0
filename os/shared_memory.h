#ifndef PANDO_OS_SHARED_MEMORY_H_
#define PANDO_OS_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// Memory that this process maps and shares with others: a memfd, sealed so that
// no process can shrink it, and make this one fault. Zeros at first. Movable;
// the destructor unmaps it.
class SharedMemory {
 public:
  enum class Peers { kMayWrite, kMayRead };

  static absl::StatusOr<SharedMemory> Create(const char* name, size_t bytes,
                                             Peers peers);
  // Maps memory that was made so, by a process before this one.
  // FAILED_PRECONDITION: the descriptor is not of such memory.
  static absl::StatusOr<SharedMemory> Adopt(UniqueFd fd);
  SharedMemory(SharedMemory&& other) noexcept
      : fd_(std::move(other.fd_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  // Gives the memory from `offset` on back to the system, even if processes map
  // it or hold a descriptor: they read zeros there then.
  void Discard(size_t offset);
  // Another descriptor of ours, for the process after this one.
  const UniqueFd& fd() const { return fd_; }
  // A descriptor for another process.
  absl::StatusOr<UniqueFd> Share() const;

 private:
  SharedMemory(UniqueFd fd, std::byte* data, size_t bytes)
      : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

  UniqueFd fd_;
  std::byte* data_;
  size_t bytes_;
};

// Another descriptor of the same file.
absl::StatusOr<UniqueFd> Duplicate(const UniqueFd& fd);

}  // namespace pando

#endif  // PANDO_OS_SHARED_MEMORY_H_
