// The functions of the CUDA driver, for the sources in this folder only.
#ifndef PANDO_CUDA_DRIVER_H_
#define PANDO_CUDA_DRIVER_H_

#include <cuda.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"

namespace pando::cuda {

// The used functions of the driver, under NVIDIA's names.
struct Driver {
  decltype(&::cuInit) cuInit;
  decltype(&::cuGetErrorName) cuGetErrorName;
  decltype(&::cuGetErrorString) cuGetErrorString;
  decltype(&::cuDeviceGetCount) cuDeviceGetCount;
  decltype(&::cuDeviceGetUuid) cuDeviceGetUuid;
  decltype(&::cuDeviceGetAttribute) cuDeviceGetAttribute;
  decltype(&::cuDeviceTotalMem) cuDeviceTotalMem;
  decltype(&::cuDeviceCanAccessPeer) cuDeviceCanAccessPeer;
  decltype(&::cuDevicePrimaryCtxRetain) cuDevicePrimaryCtxRetain;
  decltype(&::cuDevicePrimaryCtxRelease) cuDevicePrimaryCtxRelease;
  decltype(&::cuCtxPushCurrent) cuCtxPushCurrent;
  decltype(&::cuCtxPopCurrent) cuCtxPopCurrent;
  decltype(&::cuCtxSynchronize) cuCtxSynchronize;
  decltype(&::cuMemGetInfo) cuMemGetInfo;
  decltype(&::cuMemGetAllocationGranularity) cuMemGetAllocationGranularity;
  decltype(&::cuMemCreate) cuMemCreate;
  decltype(&::cuMemRelease) cuMemRelease;
  decltype(&::cuMemExportToShareableHandle) cuMemExportToShareableHandle;
  decltype(&::cuMemImportFromShareableHandle) cuMemImportFromShareableHandle;
  decltype(&::cuMemAddressReserve) cuMemAddressReserve;
  decltype(&::cuMemAddressFree) cuMemAddressFree;
  decltype(&::cuMemMap) cuMemMap;
  decltype(&::cuMemUnmap) cuMemUnmap;
  decltype(&::cuMemSetAccess) cuMemSetAccess;
  decltype(&::cuMemsetD8) cuMemsetD8;
  decltype(&::cuMemHostRegister) cuMemHostRegister;
  decltype(&::cuMemHostUnregister) cuMemHostUnregister;
  decltype(&::cuMemcpy2DAsync) cuMemcpy2DAsync;
  decltype(&::cuMemcpyDtoHAsync) cuMemcpyDtoHAsync;
  decltype(&::cuMemcpyHtoDAsync) cuMemcpyHtoDAsync;
  decltype(&::cuStreamCreate) cuStreamCreate;
  decltype(&::cuStreamDestroy) cuStreamDestroy;
  decltype(&::cuStreamSynchronize) cuStreamSynchronize;
  decltype(&::cuEventCreate) cuEventCreate;
  decltype(&::cuEventDestroy) cuEventDestroy;
  decltype(&::cuEventRecord) cuEventRecord;
  decltype(&::cuEventQuery) cuEventQuery;
};

// Returns the driver, which is never unloaded. The first call loads and
// initialises it. FAILED_PRECONDITION if there is none or it is too old.
absl::StatusOr<const Driver*> LoadDriver();

// Converts a result to a status; the message has the call, the device and the
// driver's description.
absl::Status ToStatus(CUresult result, std::string_view call,
                      const Device& device);

// Retains the device's primary context, the one that the CUDA runtime and torch
// use, and makes it current on this thread while the object lives.
class ContextScope {
 public:
  static absl::StatusOr<ContextScope> Enter(const Device& device);
  ContextScope(ContextScope&& other) noexcept;
  ContextScope& operator=(ContextScope&&) = delete;
  ~ContextScope();

 private:
  ContextScope(const Driver* driver, CUdevice device)
      : driver_(driver), device_(device) {}

  const Driver* driver_;
  CUdevice device_;
};

}  // namespace pando::cuda

#endif  // PANDO_CUDA_DRIVER_H_
