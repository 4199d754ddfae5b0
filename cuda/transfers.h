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

// Copies between a device's memory and host memory by the device's copy
// engines. Both directions run at the same time, each on a stream of its own.
// The host memory is pinned while this object lives; otherwise each copy would
// pass through a buffer of the driver, and the caller would have to wait for
// it. For use by one thread.
class Transfers {
 public:
  enum class Direction { kFromDevice, kToDevice };
  // Rows to copy: `count` rows of `row_bytes` bytes. On the device they begin
  // `device_pitch` bytes apart; in the pinned memory they lie one behind the
  // other.
  struct Rows {
    std::byte* device = nullptr;
    uint64_t device_pitch = 0;
    std::byte* host = nullptr;
    uint64_t row_bytes = 0;
    uint64_t count = 0;
  };

  // Pins `host`, which must outlive this and must not be pinned already.
  static absl::StatusOr<std::unique_ptr<Transfers>> Make(
      const Device& device, std::span<std::byte> host);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // Begins to copy rows, and returns before they are copied. `rows.host` is in
  // the pinned memory.
  absl::Status Begin(const Rows& rows, Direction direction);
  // Sets a mark behind all copies that were begun in this direction so far.
  absl::Status MarkEnd(Direction direction, uint64_t mark);
  // Returns the marks that were reached since the last call: all copies before
  // them are done. Marks of one direction are in their order.
  absl::StatusOr<std::vector<uint64_t>> TakeReached();

 private:
  class State;

  explicit Transfers(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace pando::cuda

#endif  // PANDO_CUDA_TRANSFERS_H_
