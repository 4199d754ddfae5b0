// Finds the functions of the driver by name, as cudaGetDriverEntryPoint and the
// clients of Pando ask for them.
#include <iterator>
#include <string_view>

#include "tests/support/cuda_stand_in/call.h"
#include "tests/support/cuda_stand_in/copies.h"

namespace {

struct EntryPoint {
  std::string_view name;
  void* address;
};

// cuda.h defines macros that rename changed functions, for example cuMemGetInfo
// to cuMemGetInfo_v2. Callers ask for them by the old name.
#define ENTRY(function) \
  { #function, reinterpret_cast < void*>(&function) }

const EntryPoint kEntryPoints[] = {
    ENTRY(cuCtxPopCurrent),
    ENTRY(cuCtxPushCurrent),
    ENTRY(cuCtxSynchronize),
    ENTRY(cuDeviceCanAccessPeer),
    ENTRY(cuDeviceGetAttribute),
    ENTRY(cuDeviceGetCount),
    ENTRY(cuDeviceGetUuid),
    ENTRY(cuDevicePrimaryCtxRelease),
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuDeviceTotalMem),
    ENTRY(cuDriverGetVersion),
    ENTRY(cuEventCreate),
    ENTRY(cuEventDestroy),
    ENTRY(cuEventQuery),
    ENTRY(cuEventRecord),
    ENTRY(cuGetErrorName),
    ENTRY(cuGetErrorString),
    ENTRY(cuGetProcAddress),
    ENTRY(cuInit),
    ENTRY(cuMemAddressFree),
    ENTRY(cuMemAddressReserve),
    ENTRY(cuMemCreate),
    ENTRY(cuMemExportToShareableHandle),
    ENTRY(cuMemGetAllocationGranularity),
    ENTRY(cuMemGetInfo),
    ENTRY(cuMemHostRegister),
    ENTRY(cuMemHostUnregister),
    ENTRY(cuMemImportFromShareableHandle),
    ENTRY(cuMemMap),
    ENTRY(cuMemRelease),
    ENTRY(cuMemSetAccess),
    ENTRY(cuMemUnmap),
    ENTRY(cuMemcpy2DAsync),
    {"cuMemcpyBatchAsync",
     reinterpret_cast<void*>(&cuda_stand_in::MemcpyBatchAsync)},
    ENTRY(cuMemcpyDtoHAsync),
    ENTRY(cuMemcpyHtoDAsync),
    ENTRY(cuMemsetD8),
    ENTRY(cuStreamCreate),
    ENTRY(cuStreamDestroy),
    ENTRY(cuStreamSynchronize),
};

#undef ENTRY

void* Find(std::string_view name) {
  if (cuda_stand_in::LockedState()->settings.missing == name) return nullptr;
  for (const EntryPoint& entry : kEntryPoints) {
    if (entry.name == name) return entry.address;
  }
  return nullptr;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                          cuuint64_t, CUdriverProcAddressQueryResult* found) {
  if (symbol == nullptr || function == nullptr || version > CUDA_VERSION) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *function = Find(symbol);
  if (found != nullptr) {
    *found = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                  : CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return CUDA_SUCCESS;
}
