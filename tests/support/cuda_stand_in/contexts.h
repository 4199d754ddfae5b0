#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_

#include "tests/support/cuda_stand_in/state.h"

namespace cuda_stand_in {

// The device of this thread's current context; -1 where there is none, or where
// it was released meanwhile.
int CurrentDevice(const State& state);

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_
