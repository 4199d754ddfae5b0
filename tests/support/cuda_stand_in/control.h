// What a test says to the stand-in that its own process has loaded, beside the
// environment (settings.h). Found by dlsym.
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_

// What this process has taken from the driver and not given back.
struct CudaStandInHeld {
  int contexts;
  int handles;
  int reservations;
  int mappings;
  int pinned;
  int streams;
};

extern "C" {

// From now on `function`, named as in cuda.h, returns `result`: in each call,
// or only in the `only_call`-th from now where that is not 0. A result of 0
// ends it.
__attribute__((visibility("default"))) void CudaStandInFail(
    const char* function, int result, int only_call);

__attribute__((visibility("default"))) CudaStandInHeld CudaStandInCount();
}

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTROL_H_
