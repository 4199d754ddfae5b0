#include "cuda/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cuda/address_range.h"
#include "cuda/driver.h"

namespace pando::cuda {
namespace {

CUmemLocation LocationOf(int ordinal) {
  return {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
}

absl::StatusOr<bool> Has(const Driver& driver, const Device& device,
                         CUdevice_attribute attribute) {
  int value = 0;
  RETURN_IF_ERROR(
      ToStatus(driver.cuDeviceGetAttribute(&value, attribute, device.ordinal),
               "cuDeviceGetAttribute", device));
  return value != 0;
}

absl::StatusOr<CUmemAllocationProp> PropertiesOfNew(const Driver& driver,
                                                    const Device& device) {
  ASSIGN_OR_RETURN(
      const bool can_share,
      Has(driver, device,
          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
  if (!can_share) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s cannot share memory by file descriptors", ToString(device)));
  }
  ASSIGN_OR_RETURN(
      const bool has_rdma,
      Has(driver, device,
          CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = LocationOf(device.ordinal);
  properties.allocFlags.gpuDirectRDMACapable = has_rdma ? 1 : 0;
  return properties;
}

// Gives access to the device and to all devices that can reach its memory as
// peers. A kernel on a device without access would end its process.
absl::StatusOr<std::vector<CUmemAccessDesc>> AccessOfAll(const Driver& driver,
                                                         const Device& device) {
  int count = 0;
  RETURN_IF_ERROR(
      ToStatus(driver.cuDeviceGetCount(&count), "cuDeviceGetCount", device));
  std::vector<CUmemAccessDesc> access;
  for (int other = 0; other < count; ++other) {
    int reaches = other == device.ordinal ? 1 : 0;
    if (reaches == 0) {
      RETURN_IF_ERROR(ToStatus(
          driver.cuDeviceCanAccessPeer(&reaches, other, device.ordinal),
          "cuDeviceCanAccessPeer", device));
    }
    if (reaches == 0) continue;
    access.push_back({.location = LocationOf(other),
                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  }
  return access;
}

}  // namespace

class Memory::Handle {
 public:
  Handle(const Driver* driver, CUmemGenericAllocationHandle value)
      : driver_(driver), value_(value) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { driver_->cuMemRelease(value_); }

  const Driver& driver() const { return *driver_; }
  CUmemGenericAllocationHandle value() const { return value_; }

 private:
  const Driver* const driver_;
  const CUmemGenericAllocationHandle value_;
};

absl::StatusOr<Memory> Memory::Allocate(const Device& device, uint64_t bytes) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  ASSIGN_OR_RETURN(const CUmemAllocationProp properties,
                   PropertiesOfNew(*driver, device));
  size_t grain = 0;
  RETURN_IF_ERROR(
      ToStatus(driver->cuMemGetAllocationGranularity(
                   &grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
               "cuMemGetAllocationGranularity", device));
  const uint64_t size_bytes = (bytes + grain - 1) / grain * grain;
  CUmemGenericAllocationHandle handle = 0;
  RETURN_IF_ERROR(
      ToStatus(driver->cuMemCreate(&handle, size_bytes, &properties, 0),
               absl::StrFormat("cuMemCreate of %u bytes", size_bytes), device));
  return Memory(device, size_bytes,
                std::make_shared<const Handle>(driver, handle));
}

absl::StatusOr<Memory> Memory::Import(const Device& device, int descriptor,
                                      uint64_t size_bytes) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  CUmemGenericAllocationHandle handle = 0;
  RETURN_IF_ERROR(
      ToStatus(driver->cuMemImportFromShareableHandle(
                   &handle, reinterpret_cast<void*>(intptr_t{descriptor}),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "cuMemImportFromShareableHandle", device));
  return Memory(device, size_bytes,
                std::make_shared<const Handle>(driver, handle));
}

absl::StatusOr<int> Memory::Export() const {
  int descriptor = -1;
  RETURN_IF_ERROR(ToStatus(handle_->driver().cuMemExportToShareableHandle(
                               &descriptor, handle_->value(),
                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                           "cuMemExportToShareableHandle", device()));
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, "cannot set close-on-exec");
    close(descriptor);
    return status;
  }
  return descriptor;
}

// Build takes several steps; the destructor undoes those that were taken.
class Mapping::Region {
 public:
  explicit Region(const Memory& memory)
      : memory_(memory), driver_(memory.handle_->driver()) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  absl::Status Build(CUdeviceptr wanted, Addresses afterwards);
  absl::Status Zero() const;

  std::span<std::byte> bytes() const {
    return {reinterpret_cast<std::byte*>(range_->begin()),
            memory_.size_bytes()};
  }

 private:
  const Memory memory_;
  const Driver& driver_;
  CUcontext context_ = nullptr;
  std::optional<AddressRange> range_;
  bool is_mapped_ = false;
};

absl::Status Mapping::Region::Build(CUdeviceptr wanted, Addresses afterwards) {
  const Device& device = memory_.device();
  const size_t size = memory_.size_bytes();
  RETURN_IF_ERROR(
      ToStatus(driver_.cuDevicePrimaryCtxRetain(&context_, device.ordinal),
               "cuDevicePrimaryCtxRetain", device));
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device));
  ASSIGN_OR_RETURN(
      AddressRange range,
      AddressRange::Reserve(driver_, device, size, wanted, afterwards));
  range_.emplace(std::move(range));
  const CUdeviceptr begin = range_->begin();
  RETURN_IF_ERROR(
      ToStatus(driver_.cuMemMap(begin, size, 0, memory_.handle_->value(), 0),
               "cuMemMap", device));
  is_mapped_ = true;
  ASSIGN_OR_RETURN(const std::vector<CUmemAccessDesc> access,
                   AccessOfAll(driver_, device));
  return ToStatus(
      driver_.cuMemSetAccess(begin, size, access.data(), access.size()),
      "cuMemSetAccess", device);
}

Mapping::Region::~Region() {
  if (is_mapped_) driver_.cuMemUnmap(range_->begin(), memory_.size_bytes());
  if (context_ != nullptr) {
    driver_.cuDevicePrimaryCtxRelease(memory_.device().ordinal);
  }
}

absl::Status Mapping::Region::Zero() const {
  const Device& device = memory_.device();
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device));
  RETURN_IF_ERROR(
      ToStatus(driver_.cuMemsetD8(range_->begin(), 0, memory_.size_bytes()),
               "cuMemsetD8", device));
  return ToStatus(driver_.cuCtxSynchronize(), "cuCtxSynchronize", device);
}

absl::StatusOr<Mapping> Mapping::Map(const Memory& memory, std::byte* wanted,
                                     Addresses afterwards) {
  auto region = std::make_shared<Region>(memory);
  RETURN_IF_ERROR(
      region->Build(reinterpret_cast<CUdeviceptr>(wanted), afterwards));
  return Mapping(region->bytes(), region);
}

absl::Status Mapping::Zero() const { return region_->Zero(); }

}  // namespace pando::cuda
