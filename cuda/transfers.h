#ifndef PANDO_CUDA_TRANSFERS_H_
#define PANDO_CUDA_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"

namespace pando::cuda {

// Copies between a device's memory and host memory by the copy engines: both
// directions at once, each on a stream of its own. The host memory is pinned as
// long as this lives; without that each copy would pass through a buffer of the
// driver, and the caller would wait for it. For one thread.
class Transfers {
 public:
  enum class Direction { kFromDevice, kToDevice };
  // Rows that lie `device_pitch` bytes apart on the device, and one after the
  // other in the pinned memory.
  struct Rows {
    std::byte* device = nullptr;
    uint64_t device_pitch = 0;
    std::byte* host = nullptr;
    uint64_t row_bytes = 0;
    uint64_t count = 0;
  };

  // `host` outlives this, and must not be pinned already.
  static absl::StatusOr<std::unique_ptr<Transfers>> Make(
      const Device& device, std::span<std::byte> host);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  absl::Status Begin(const Rows& rows, Direction direction);
  // Marks the end of what was begun in a direction until now.
  absl::Status MarkEnd(Direction direction, uint64_t mark);
  // The marks whose ends were reached since the last call; in each direction in
  // their order.
  absl::StatusOr<std::vector<uint64_t>> TakeReached();

 private:
  class State;

  explicit Transfers(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace pando::cuda

#endif  // PANDO_CUDA_TRANSFERS_H_
