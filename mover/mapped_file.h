#ifndef PANDO_MOVER_MAPPED_FILE_H_
#define PANDO_MOVER_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando::mover {

// A mapping of memory that pandod shares with this process. It is left out of
// core dumps. Move-only; the destructor unmaps it.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Map(const UniqueFd& fd, uint64_t bytes);
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace pando::mover

#endif  // PANDO_MOVER_MAPPED_FILE_H_
