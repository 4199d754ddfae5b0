// Keeps the primary contexts, and knows which one is current on each thread.
#include "tests/support/cuda_stand_in/contexts.h"

#include <cstdint>
#include <vector>

#include "tests/support/cuda_stand_in/call.h"

using cuda_stand_in::Call;
using cuda_stand_in::State;

namespace {

thread_local std::vector<CUcontext> current;

// A context is the ordinal of its device plus one, which is never a valid
// pointer.
CUcontext ContextOf(CUdevice device) {
  return reinterpret_cast<CUcontext>(intptr_t{device} + 1);
}

int DeviceOf(CUcontext context) {
  return static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
}

bool IsRetained(const State& state, CUdevice device) {
  return state.HasDevice(device) && state.contexts[device] > 0;
}

}  // namespace

namespace cuda_stand_in {

int CurrentDevice(const State& state) {
  if (current.empty()) return -1;
  const int device = DeviceOf(current.back());
  return IsRetained(state, device) ? device : -1;
}

}  // namespace cuda_stand_in

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return Call("cuDevicePrimaryCtxRetain", [&](State& state) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!state.HasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    ++state.contexts[device];
    *context = ContextOf(device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return Call("cuDevicePrimaryCtxRelease", [&](State& state) {
    if (!state.HasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!IsRetained(state, device)) return CUDA_ERROR_INVALID_CONTEXT;
    --state.contexts[device];
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return Call("cuCtxPushCurrent", [&](State& state) {
    if (!IsRetained(state, DeviceOf(context))) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    current.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return Call("cuCtxPopCurrent", [&](State&) {
    if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = current.back();
    current.pop_back();
    return CUDA_SUCCESS;
  });
}

// The stand-in runs nothing beside its caller, so there is nothing to wait for.
CUresult cuCtxSynchronize() {
  return Call("cuCtxSynchronize", [&](State& state) {
    return cuda_stand_in::CurrentDevice(state) < 0 ? CUDA_ERROR_INVALID_CONTEXT
                                                   : CUDA_SUCCESS;
  });
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return Call("cuMemGetInfo", [&](State& state) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int device = cuda_stand_in::CurrentDevice(state);
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    *free = state.FreeBytes(device);
    *total = state.settings.device_bytes;
    return CUDA_SUCCESS;
  });
}
