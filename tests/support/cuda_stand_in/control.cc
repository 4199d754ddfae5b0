#include "tests/support/cuda_stand_in/control.h"

#include <numeric>

#include "tests/support/cuda_stand_in/call.h"

void CudaStandInFail(const char* function, int result, int only_call) {
  cuda_stand_in::LockedState state;
  state->settings.faults[function] = {.result = result, .only_call = only_call};
  state->calls[function] = 0;
}

CudaStandInHeld CudaStandInCount() {
  cuda_stand_in::LockedState state;
  CudaStandInHeld held = {
      .contexts =
          std::accumulate(state->contexts.begin(), state->contexts.end(), 0),
      .handles = static_cast<int>(state->handles.size()),
      .reservations = static_cast<int>(state->reservations.size()),
      .mappings = 0,
      .pinned = static_cast<int>(state->pinned.size()),
      .streams = static_cast<int>(state->streams.size()),
  };
  for (const auto& [begin, reservation] : state->reservations) {
    held.mappings += static_cast<int>(reservation.mapped.size());
  }
  return held;
}
