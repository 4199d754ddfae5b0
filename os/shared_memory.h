#ifndef PANDO_OS_SHARED_MEMORY_H_
#define PANDO_OS_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// Memory that this process maps and shares with others: a memfd. It is sealed
// so that no process can shrink it, which would make this process fault. It is
// zero at first. Movable; the destructor unmaps it.
class SharedMemory {
 public:
  // The rights of the processes that get a descriptor by Share.
  enum class Peers { kMayWrite, kMayRead };

  // Makes new memory of `bytes` bytes. `name` is for people who look into
  // /proc.
  static absl::StatusOr<SharedMemory> Create(const char* name, size_t bytes,
                                             Peers peers);
  // Maps memory that an earlier process has made by Create. Returns
  // FAILED_PRECONDITION if the descriptor is not of such memory.
  static absl::StatusOr<SharedMemory> Adopt(UniqueFd fd);
  SharedMemory(SharedMemory&& other) noexcept
      : fd_(std::move(other.fd_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  // Gives the memory from `offset` on back to the system. Processes that map it
  // or hold a descriptor read zeros there from then on.
  void Discard(size_t offset);
  // Returns our own descriptor, for a process after this one.
  const UniqueFd& fd() const { return fd_; }
  // Returns a new descriptor for another process.
  absl::StatusOr<UniqueFd> Share() const;

 private:
  SharedMemory(UniqueFd fd, std::byte* data, size_t bytes)
      : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

  UniqueFd fd_;
  std::byte* data_;
  size_t bytes_;
};

// Returns another descriptor of the same open file.
absl::StatusOr<UniqueFd> Duplicate(const UniqueFd& fd);

}  // namespace pando

#endif  // PANDO_OS_SHARED_MEMORY_H_
