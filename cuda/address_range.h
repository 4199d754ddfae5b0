#ifndef PANDO_CUDA_ADDRESS_RANGE_H_
#define PANDO_CUDA_ADDRESS_RANGE_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/memory.h"

namespace pando::cuda {

// A reserved range of addresses of this process, into which one Memory may be
// mapped. Move-only; any thread may make one.
class AddressRange {
 public:
  // Reserves `bytes` bytes at address `wanted`, or anywhere if that is 0.
  // `afterwards` says what the destructor does with the range.
  // FAILED_PRECONDITION if the driver does not give the wanted address.
  static absl::StatusOr<AddressRange> Reserve(const Driver& driver,
                                              const Device& device,
                                              size_t bytes, CUdeviceptr wanted,
                                              Addresses afterwards);
  AddressRange(AddressRange&& other) noexcept
      : driver_(other.driver_),
        begin_(std::exchange(other.begin_, 0)),
        bytes_(other.bytes_),
        afterwards_(other.afterwards_) {}
  AddressRange& operator=(AddressRange&&) = delete;
  // REQUIRES: nothing is mapped there.
  ~AddressRange();

  CUdeviceptr begin() const { return begin_; }

 private:
  AddressRange(const Driver* driver, CUdeviceptr begin, size_t bytes,
               Addresses afterwards)
      : driver_(driver),
        begin_(begin),
        bytes_(bytes),
        afterwards_(afterwards) {}

  const Driver* driver_;
  CUdeviceptr begin_;
  size_t bytes_;
  Addresses afterwards_;
};

}  // namespace pando::cuda

#endif  // PANDO_CUDA_ADDRESS_RANGE_H_
