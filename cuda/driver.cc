#include "cuda/driver.h"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando::cuda {
namespace {

// The version of CUDA since which every function of Driver has had its present
// form.
constexpr int kInterfaceVersion = 12000;

std::string VersionName(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

// The driver's own search for its functions. It finds the form that a function
// has in a given version of CUDA; dlsym would need the name of that form
// (cuMemGetInfo_v2).
using Search = decltype(&::cuGetProcAddress);

absl::Status TooOld(void* library) {
  int version = 0;
  if (const auto cu_driver_get_version =
          reinterpret_cast<decltype(&::cuDriverGetVersion)>(
              dlsym(library, "cuDriverGetVersion"))) {
    cu_driver_get_version(&version);
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the CUDA driver cannot be used: it supports CUDA %s, at least %s is "
      "needed",
      VersionName(version), VersionName(kInterfaceVersion)));
}

// The library is never unloaded: its functions may be called until the end.
absl::StatusOr<Search> LoadLibrary() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "no CUDA driver was found on this machine: %s", dlerror()));
  }
  const auto search =
      reinterpret_cast<Search>(dlsym(library, "cuGetProcAddress_v2"));
  if (search == nullptr) return TooOld(library);
  return search;
}

template <typename Function>
absl::Status Find(Search search, const char* name, Function& function) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = search(name, &address, kInterfaceVersion,
                                 CU_GET_PROC_ADDRESS_DEFAULT, &found);
  if (result != CUDA_SUCCESS || found != CU_GET_PROC_ADDRESS_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the CUDA driver has no %s; a newer one is needed", name));
  }
  function = reinterpret_cast<Function>(address);
  return absl::OkStatus();
}

absl::StatusOr<Driver> FindFunctions() {
  ASSIGN_OR_RETURN(const Search search, LoadLibrary());
  Driver driver = {};
  for (absl::Status found : {
           Find(search, "cuInit", driver.cuInit),
           Find(search, "cuGetErrorName", driver.cuGetErrorName),
           Find(search, "cuGetErrorString", driver.cuGetErrorString),
           Find(search, "cuDeviceGetCount", driver.cuDeviceGetCount),
           Find(search, "cuDeviceGetUuid", driver.cuDeviceGetUuid),
           Find(search, "cuDeviceGetAttribute", driver.cuDeviceGetAttribute),
           Find(search, "cuDeviceTotalMem", driver.cuDeviceTotalMem),
           Find(search, "cuDeviceCanAccessPeer", driver.cuDeviceCanAccessPeer),
           Find(search, "cuDevicePrimaryCtxRetain",
                driver.cuDevicePrimaryCtxRetain),
           Find(search, "cuDevicePrimaryCtxRelease",
                driver.cuDevicePrimaryCtxRelease),
           Find(search, "cuCtxPushCurrent", driver.cuCtxPushCurrent),
           Find(search, "cuCtxPopCurrent", driver.cuCtxPopCurrent),
           Find(search, "cuCtxSynchronize", driver.cuCtxSynchronize),
           Find(search, "cuMemGetInfo", driver.cuMemGetInfo),
           Find(search, "cuMemGetAllocationGranularity",
                driver.cuMemGetAllocationGranularity),
           Find(search, "cuMemCreate", driver.cuMemCreate),
           Find(search, "cuMemRelease", driver.cuMemRelease),
           Find(search, "cuMemExportToShareableHandle",
                driver.cuMemExportToShareableHandle),
           Find(search, "cuMemImportFromShareableHandle",
                driver.cuMemImportFromShareableHandle),
           Find(search, "cuMemAddressReserve", driver.cuMemAddressReserve),
           Find(search, "cuMemAddressFree", driver.cuMemAddressFree),
           Find(search, "cuMemMap", driver.cuMemMap),
           Find(search, "cuMemUnmap", driver.cuMemUnmap),
           Find(search, "cuMemSetAccess", driver.cuMemSetAccess),
           Find(search, "cuMemsetD8", driver.cuMemsetD8),
           Find(search, "cuMemHostRegister", driver.cuMemHostRegister),
           Find(search, "cuMemHostUnregister", driver.cuMemHostUnregister),
           Find(search, "cuMemcpy2DAsync", driver.cuMemcpy2DAsync),
           Find(search, "cuMemcpyDtoHAsync", driver.cuMemcpyDtoHAsync),
           Find(search, "cuMemcpyHtoDAsync", driver.cuMemcpyHtoDAsync),
           Find(search, "cuStreamCreate", driver.cuStreamCreate),
           Find(search, "cuStreamDestroy", driver.cuStreamDestroy),
           Find(search, "cuStreamSynchronize", driver.cuStreamSynchronize),
           Find(search, "cuEventCreate", driver.cuEventCreate),
           Find(search, "cuEventDestroy", driver.cuEventDestroy),
           Find(search, "cuEventRecord", driver.cuEventRecord),
           Find(search, "cuEventQuery", driver.cuEventQuery),
       }) {
    if (!found.ok()) return found;
  }
  return driver;
}

std::string WordsOf(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS ||
      driver.cuGetErrorString(result, &text) != CUDA_SUCCESS) {
    return absl::StrFormat("error %d, which it has no words for", result);
  }
  return absl::StrFormat("%s (%s, %d)", text, name, result);
}

absl::StatusOr<Driver> InitialisedDriver() {
  ASSIGN_OR_RETURN(const Driver driver, FindFunctions());
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the CUDA driver cannot be used: cuInit: %s", WordsOf(driver, result)));
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
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  return absl::Status(CodeOf(result),
                      absl::StrFormat("%s: %s: %s", ToString(device), call,
                                      WordsOf(*driver, result)));
}

absl::StatusOr<ContextScope> ContextScope::Enter(const Device& device) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  CUcontext context = nullptr;
  RETURN_IF_ERROR(
      ToStatus(driver->cuDevicePrimaryCtxRetain(&context, device.ordinal),
               "cuDevicePrimaryCtxRetain", device));
  if (absl::Status status = ToStatus(driver->cuCtxPushCurrent(context),
                                     "cuCtxPushCurrent", device);
      !status.ok()) {
    driver->cuDevicePrimaryCtxRelease(device.ordinal);
    return status;
  }
  return ContextScope(driver, device.ordinal);
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
