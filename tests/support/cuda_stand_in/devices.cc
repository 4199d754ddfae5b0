// Describes the devices that this machine seems to have.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "tests/support/cuda_stand_in/call.h"

using cuda_stand_in::Call;
using cuda_stand_in::State;

namespace {

CUresult OnDevice(const char* function, CUdevice device, const void* out,
                  const std::function<CUresult(State&)>& body) {
  return Call(function, [&](State& state) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!state.HasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return body(state);
  });
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  cuda_stand_in::LockedState state;
  const CUresult fault = FaultOf(*state, "cuInit");
  if (fault != CUDA_SUCCESS) return fault;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (state->settings.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  state->initialised_by = getpid();
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  return Call("cuDeviceGetCount", [&](State& state) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(state.settings.devices.size());
    return CUDA_SUCCESS;
  });
}

// Returns 57a2d1f0-0000-4000-8000-0000000000NN for device NN of the machine.
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return OnDevice("cuDeviceGetUuid", device, uuid, [&](State& state) {
    const unsigned char bytes[16] = {
        0x57, 0xa2,
        0xd1, 0xf0,
        0,    0,
        0x40, 0,
        0x80, 0,
        0,    0,
        0,    0,
        0,    static_cast<unsigned char>(state.settings.devices[device])};
    std::copy(std::begin(bytes), std::end(bytes), uuid->bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                              CUdevice device) {
  return OnDevice("cuDeviceGetAttribute", device, value, [&](State& state) {
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *value = state.settings.shares ? 1 : 0;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        *value = state.settings.has_rdma ? 1 : 0;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        *value = static_cast<int>(state.settings.max_pitch);
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return OnDevice("cuDeviceCanAccessPeer", device, can, [&](State& state) {
    if (!state.HasDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = state.settings.has_peers && device != peer ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return OnDevice("cuDeviceTotalMem", device, bytes, [&](State& state) {
    *bytes = state.settings.device_bytes;
    return CUDA_SUCCESS;
  });
}
