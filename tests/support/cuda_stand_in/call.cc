#include "tests/support/cuda_stand_in/call.h"

#include <unistd.h>

namespace cuda_stand_in {
namespace {

// The mutex is never destroyed, because threads may call functions of the
// driver until the process ends.
std::mutex& Mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

State& OnlyState() {
  static auto* const state = new State;
  return *state;
}

}  // namespace

LockedState::LockedState() : lock_(Mutex()), state_(OnlyState()) {}

CUresult FaultOf(State& state, const char* function) {
  const int call = ++state.calls[function];
  const auto fault = state.settings.faults.find(function);
  if (fault == state.settings.faults.end()) return CUDA_SUCCESS;
  const int only = fault->second.only_call;
  if (only != 0 && only != call) return CUDA_SUCCESS;
  return static_cast<CUresult>(fault->second.result);
}

CUresult Call(const char* function,
              const std::function<CUresult(State&)>& body) {
  LockedState state;
  const CUresult fault = FaultOf(*state, function);
  if (fault != CUDA_SUCCESS) return fault;
  if (state->initialised_by != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return body(*state);
}

}  // namespace cuda_stand_in
