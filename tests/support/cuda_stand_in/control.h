// Functions by which a test controls the stand-in that its own process has
// loaded, beside the environment (settings.h). Found by dlsym.
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_

// The resources that this process has taken from the driver and not given back.
struct CudaStandInHeld {
  // Devices that have a context of this process, and references to those.
  int devices;
  int contexts;
  int handles;
  int reservations;
  int mappings;
  int pinned;
  int streams;
  int events;
};

extern "C" {

// From now on `function`, named as in cuda.h, returns `result`: in each call,
// or only in the `only_call`-th from now where that is not 0. A result of 0
// ends it.
__attribute__((visibility("default"))) void CudaStandInFail(
    const char* function, int result, int only_call);

__attribute__((visibility("default"))) CudaStandInHeld CudaStandInCount();

// Whether copies in this direction are made, as they are from the beginning, or
// stay under way.
__attribute__((visibility("default"))) void CudaStandInMakeCopies(
    bool is_to_device, bool are_made);

// Whether an address that is asked for is not given; see settings.h.
__attribute__((visibility("default"))) void CudaStandInIgnoreAddresses(
    bool ignores);

// How often this process has called `function`.
__attribute__((visibility("default"))) int CudaStandInCalls(
    const char* function);

// Whether kernels on the device with this ordinal may write where memory was
// mapped at `address`.
__attribute__((visibility("default"))) bool CudaStandInMayWrite(
    unsigned long long address, int device);
}

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
