// Functions by which a test controls the stand-in that its own process has
// loaded. The test finds them by dlsym. The environment controls the stand-in,
// too (settings.h).
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_

// The resources that this process has taken from the driver and not given back.
struct CudaStandInHeld {
  // How many devices have a context in this process, and how many references to
  // such contexts there are.
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

// Makes `function`, named as in cuda.h, return `result` from now on: in each
// call if `only_call` is 0, else only in that call, counted from 1 from now on.
// A `result` of 0 makes the function work again.
__attribute__((visibility("default"))) void CudaStandInFail(
    const char* function, int result, int only_call);

__attribute__((visibility("default"))) CudaStandInHeld CudaStandInCount();

// Sets whether copies in this direction are made. They are made at first;
// otherwise they stay under way.
__attribute__((visibility("default"))) void CudaStandInMakeCopies(
    bool is_to_device, bool are_made);

// Sets whether the driver ignores the addresses that callers ask for; see
// settings.h.
__attribute__((visibility("default"))) void CudaStandInIgnoreAddresses(
    bool ignores);

// Returns how often this process has called `function` since the last
// CudaStandInFail for that function, or since the start if there was none.
__attribute__((visibility("default"))) int CudaStandInCalls(
    const char* function);

// Returns whether kernels on the device with this ordinal may write to the
// memory that is mapped at `address`.
__attribute__((visibility("default"))) bool CudaStandInMayWrite(
    unsigned long long address, int device);
}

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
