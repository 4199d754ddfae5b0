#include "cuda/driver.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace pando::cuda {
namespace {

// Every function of Driver has had its present form since.
constexpr unsigned int kInterfaceVersion = 12000;

std::string VersionName(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

// Why the runtime cannot find the driver's functions.
absl::Status NoDriver(cudaError_t error) {
  int version = 0;
  cudaDriverGetVersion(&version);
  if (version == 0) {
    return absl::FailedPreconditionError(
        "no CUDA driver (libcuda.so.1) was found on this machine");
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the CUDA driver cannot be used: it supports CUDA %s, this program was "
      "built with CUDA %s: %s",
      VersionName(version), VersionName(CUDART_VERSION),
      cudaGetErrorString(error)));
}

template <typename Function>
absl::Status Find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      name, &address, kInterfaceVersion, cudaEnableDefault, &found);
  if (error != cudaSuccess) return NoDriver(error);
  if (found != cudaDriverEntryPointSuccess) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the CUDA driver has no %s; a newer one is needed", name));
  }
  function = reinterpret_cast<Function>(address);
  return absl::OkStatus();
}

absl::StatusOr<Driver> FindFunctions() {
  Driver driver = {};
  for (absl::Status found : {
           Find("cuInit", driver.cuInit),
           Find("cuGetErrorName", driver.cuGetErrorName),
           Find("cuGetErrorString", driver.cuGetErrorString),
           Find("cuDeviceGetCount", driver.cuDeviceGetCount),
           Find("cuDeviceGetUuid", driver.cuDeviceGetUuid),
           Find("cuDeviceGetAttribute", driver.cuDeviceGetAttribute),
           Find("cuDeviceTotalMem", driver.cuDeviceTotalMem),
           Find("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain),
           Find("cuDevicePrimaryCtxRelease", driver.cuDevicePrimaryCtxRelease),
           Find("cuCtxPushCurrent", driver.cuCtxPushCurrent),
           Find("cuCtxPopCurrent", driver.cuCtxPopCurrent),
           Find("cuCtxSynchronize", driver.cuCtxSynchronize),
           Find("cuMemGetInfo", driver.cuMemGetInfo),
           Find("cuMemGetAllocationGranularity",
                driver.cuMemGetAllocationGranularity),
           Find("cuMemCreate", driver.cuMemCreate),
           Find("cuMemRelease", driver.cuMemRelease),
           Find("cuMemExportToShareableHandle",
                driver.cuMemExportToShareableHandle),
           Find("cuMemImportFromShareableHandle",
                driver.cuMemImportFromShareableHandle),
           Find("cuMemAddressReserve", driver.cuMemAddressReserve),
           Find("cuMemAddressFree", driver.cuMemAddressFree),
           Find("cuMemMap", driver.cuMemMap),
           Find("cuMemUnmap", driver.cuMemUnmap),
           Find("cuMemSetAccess", driver.cuMemSetAccess),
           Find("cuMemsetD8", driver.cuMemsetD8),
       }) {
    if (!found.ok()) return found;
  }
  return driver;
}

std::string WordsOf(const Driver& driver, CUresult result) {
  const char* name = "unknown error";
  const char* text = "";
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return absl::StrFormat("%s (%s, %d)", text, name, result);
}

absl::StatusOr<Driver> InitialisedDriver() {
  absl::StatusOr<Driver> driver = FindFunctions();
  if (!driver.ok()) return driver;
  if (const CUresult result = driver->cuInit(0); result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the CUDA driver cannot be used: cuInit: %s",
                        WordsOf(*driver, result)));
  }
  return driver;
}

absl::StatusCode CodeOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<const Driver*> LoadDriver() {
  static const auto* const driver =
      new absl::StatusOr<Driver>(InitialisedDriver());
  if (!driver->ok()) return driver->status();
  return &**driver;
}

absl::Status ToStatus(CUresult result, std::string_view call,
                      const Device& device) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const absl::StatusOr<const Driver*> driver = LoadDriver();
  if (!driver.ok()) return driver.status();
  return absl::Status(CodeOf(result),
                      absl::StrFormat("%s: %s: %s", ToString(device), call,
                                      WordsOf(**driver, result)));
}

absl::StatusOr<ContextScope> ContextScope::Enter(const Device& device) {
  const absl::StatusOr<const Driver*> driver = LoadDriver();
  if (!driver.ok()) return driver.status();
  CUcontext context = nullptr;
  absl::Status status =
      ToStatus((*driver)->cuDevicePrimaryCtxRetain(&context, device.ordinal),
               "cuDevicePrimaryCtxRetain", device);
  if (!status.ok()) return status;
  status = ToStatus((*driver)->cuCtxPushCurrent(context), "cuCtxPushCurrent",
                    device);
  if (!status.ok()) {
    (*driver)->cuDevicePrimaryCtxRelease(device.ordinal);
    return status;
  }
  return ContextScope(*driver, device.ordinal);
}

ContextScope::ContextScope(ContextScope&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)), device_(other.device_) {}

ContextScope::~ContextScope() {
  if (driver_ == nullptr) return;
  CUcontext context = nullptr;
  driver_->cuCtxPopCurrent(&context);
  driver_->cuDevicePrimaryCtxRelease(device_);
}

}  // namespace pando::cuda
