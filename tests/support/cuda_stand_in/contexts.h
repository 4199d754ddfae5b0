#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_

#include "tests/support/cuda_stand_in/state.h"

namespace cuda_stand_in {

// Returns the device of this thread's current context, or -1 if the thread has
// none or the context was released meanwhile.
int CurrentDevice(const State& state);

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CONTEXTS_H_
