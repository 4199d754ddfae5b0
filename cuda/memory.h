#ifndef PANDO_CUDA_MEMORY_H_
#define PANDO_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"

namespace pando::cuda {

// Memory of a device, without an address. A copy is another reference to it.
// The memory is freed when the last reference, mapping and exported descriptor
// are gone, in all processes. Any thread may use it.
class Memory {
 public:
  // Allocates `bytes`, rounded up to the device's granularity. Network cards
  // may read and write it (GPUDirect RDMA) where the device allows that.
  static absl::StatusOr<Memory> Allocate(const Device& device, uint64_t bytes);
  // Imports memory that another process has exported. The caller keeps the
  // descriptor.
  static absl::StatusOr<Memory> Import(const Device& device, int descriptor,
                                       uint64_t size_bytes);

  // Makes a close-on-exec descriptor, which the caller closes.
  absl::StatusOr<int> Export() const;

  const Device& device() const { return device_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class Mapping;
  class Handle;

  Memory(Device device, uint64_t size_bytes,
         std::shared_ptr<const Handle> handle)
      : device_(std::move(device)),
        size_bytes_(size_bytes),
        handle_(std::move(handle)) {}

  Device device_;
  uint64_t size_bytes_;
  std::shared_ptr<const Handle> handle_;
};

// Says whether the addresses of a mapping stay reserved when it is gone.
enum class Addresses {
  kFreed,
  // They stay reserved, for the next mapping of this size: a driver may refuse
  // the addresses of a range that was freed, and captured graphs still hold
  // them. A range takes no memory, and no more of a size are kept than were
  // used at once.
  kKept,
};

// Memory mapped at an address of this process, where kernels can read and write
// it, but not the CPU: those on its device, and on each other device that this
// process sees and that reaches the memory as a peer. A copy is another
// reference; the last one unmaps. Retains the device's primary context.
class Mapping {
 public:
  // Maps the memory anywhere, or at `wanted`. FAILED_PRECONDITION: the driver
  // does not give that address.
  static absl::StatusOr<Mapping> Map(const Memory& memory,
                                     std::byte* wanted = nullptr,
                                     Addresses afterwards = Addresses::kFreed);

  std::span<std::byte> bytes() const { return bytes_; }

  absl::Status Zero() const;

 private:
  class Region;

  Mapping(std::span<std::byte> bytes, std::shared_ptr<const Region> region)
      : bytes_(bytes), region_(std::move(region)) {}

  std::span<std::byte> bytes_;
  std::shared_ptr<const Region> region_;
};

}  // namespace pando::cuda

#endif  // PANDO_CUDA_MEMORY_H_
