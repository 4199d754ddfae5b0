#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_

#include <functional>
#include <mutex>

#include "tests/support/cuda_stand_in/driver_api.h"
#include "tests/support/cuda_stand_in/state.h"

namespace cuda_stand_in {

// The state, for as long as this lives; no other call uses it meanwhile.
class LockedState {
 public:
  LockedState();
  State* operator->() { return &state_; }
  State& operator*() { return state_; }

 private:
  std::unique_lock<std::mutex> lock_;
  State& state_;
};

// Runs a function of the driver, unless it is to fail or the driver was not
// initialised.
CUresult Call(const char* function,
              const std::function<CUresult(State&)>& body);

// Only the fault that was set: also before cuInit.
CUresult FaultOf(State& state, const char* function);

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_CALL_H_
