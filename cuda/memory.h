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
  // may read and write it (GPUDirect RDMA) if the device allows that.
  // FAILED_PRECONDITION if the device cannot share memory by descriptors.
  static absl::StatusOr<Memory> Allocate(const Device& device, uint64_t bytes);
  // Imports memory that another process has exported. The caller keeps the
  // descriptor.
  static absl::StatusOr<Memory> Import(const Device& device, int descriptor,
                                       uint64_t size_bytes);

  // Makes a close-on-exec descriptor of the memory. The caller closes it.
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

// The fate of a mapping's addresses once the mapping is gone.
enum class Addresses {
  kFreed,
  // They stay reserved for the next mapping of the same size. Captured graphs
  // contain them, and a driver may refuse to give the addresses of a freed
  // range again. A range takes no memory. Of each size, no more ranges are kept
  // than were once in use at the same time.
  kKept,
};

// Memory mapped at an address of this process. Kernels can read and write it
// there: those on its own device, and on each device that this process sees and
// that can access the memory as a peer. The CPU cannot. A copy is another
// reference; the last one unmaps. A mapping retains the device's primary
// context.
class Mapping {
 public:
  // Maps the memory at `wanted`, or anywhere if that is null.
  // FAILED_PRECONDITION if the driver does not give the wanted address.
  static absl::StatusOr<Mapping> Map(const Memory& memory,
                                     std::byte* wanted = nullptr,
                                     Addresses afterwards = Addresses::kFreed);

  std::span<std::byte> bytes() const { return bytes_; }

  // Fills the memory with zeros, and waits until that is done.
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
