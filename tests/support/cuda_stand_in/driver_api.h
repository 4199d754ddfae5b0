// Includes the declarations of the driver, as functions that the stand-in
// exports. Other functions of the stand-in are hidden by default.
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_DRIVER_API_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_DRIVER_API_H_

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_DRIVER_API_H_
