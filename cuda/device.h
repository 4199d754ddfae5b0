#ifndef PANDO_CUDA_DEVICE_H_
#define PANDO_CUDA_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando::cuda {

// One GPU, or one MIG slice. The ordinal is this process's own (see
// CUDA_VISIBLE_DEVICES); the UUID, in lower case and without the prefix GPU- or
// MIG-, means the same device in every process.
struct Device {
  int ordinal = 0;
  std::string uuid;
};

// "GPU 0 (01234567-89ab-...)", for messages.
std::string ToString(const Device& device);

// Finds a device by its ordinal, or by its UUID with or without a prefix.
// NOT_FOUND lists the existing devices. FAILED_PRECONDITION if there is no
// driver, or if this was built without the CUDA toolkit. Any thread may call
// these functions.
absl::StatusOr<Device> FindDevice(const std::string& name);

// The bytes of the device's memory, and of the part of it that is free.
absl::StatusOr<uint64_t> TotalBytes(const Device& device);
absl::StatusOr<uint64_t> FreeBytes(const Device& device);

}  // namespace pando::cuda

#endif  // PANDO_CUDA_DEVICE_H_
