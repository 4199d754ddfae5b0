#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_

#include <functional>
#include <mutex>

#include "tests/support/cuda_stand_in/driver_api.h"
#include "tests/support/cuda_stand_in/state.h"

namespace cuda_stand_in {

// Gives access to the state. No other call uses the state while this object
// lives.
class LockedState {
 public:
  LockedState();
  State* operator->() { return &state_; }
  State& operator*() { return state_; }

 private:
  std::unique_lock<std::mutex> lock_;
  State& state_;
};

// Runs `body`, which is the function of the driver called `function`. Returns
// an error instead if that function is to fail, or if the driver was not
// initialised.
CUresult Call(const char* function,
              const std::function<CUresult(State&)>& body);

// Counts a call of `function`, and returns the error that the call is to have,
// or success. Unlike Call, it does not need cuInit.
CUresult FaultOf(State& state, const char* function);

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_
