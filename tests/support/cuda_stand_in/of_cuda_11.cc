// A stand-in for a driver that is too old, that of CUDA 11.4. It has the
// functions that tell its version, but no cuGetProcAddress_v2.
#include "tests/support/cuda_stand_in/driver_api.h"

CUresult cuInit(unsigned int) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = 11040;
  return CUDA_SUCCESS;
}
