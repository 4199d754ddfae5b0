#include "tests/support/cuda_stand_in/control.h"

#include <algorithm>
#include <numeric>

#include "tests/support/cuda_stand_in/call.h"

void CudaStandInFail(const char* function, int result, int only_call) {
  cuda_stand_in::LockedState state;
  state->settings.faults[function] = {.result = result, .only_call = only_call};
  state->calls[function] = 0;
}

void CudaStandInIgnoreAddresses(bool ignores) {
  cuda_stand_in::LockedState state;
  state->settings.ignores_addresses = ignores;
}

CudaStandInHeld CudaStandInCount() {
  cuda_stand_in::LockedState state;
  CudaStandInHeld held = {
      .devices = static_cast<int>(
          std::ranges::count_if(state->contexts, [](int n) { return n > 0; })),
      .contexts =
          std::accumulate(state->contexts.begin(), state->contexts.end(), 0),
      .handles = static_cast<int>(state->handles.size()),
      .reservations = static_cast<int>(state->reservations.size()),
      .mappings = 0,
      .pinned = static_cast<int>(state->pinned.size()),
      .streams = static_cast<int>(state->streams.size()),
      .events = static_cast<int>(state->events.size()),
  };
  for (const auto& [begin, reservation] : state->reservations) {
    held.mappings += static_cast<int>(reservation.mapped.size());
  }
  return held;
}

void CudaStandInMakeCopies(bool is_to_device, bool are_made) {
  using cuda_stand_in::Step;
  cuda_stand_in::LockedState state;
  const Step::Kind kind =
      is_to_device ? Step::Kind::kToDevice : Step::Kind::kFromDevice;
  if (are_made) {
    state->held_back.erase(kind);
  } else {
    state->held_back.insert(kind);
  }
}

int CudaStandInCalls(const char* function) {
  return cuda_stand_in::LockedState()->calls[function];
}

bool CudaStandInMayWrite(unsigned long long address, int device) {
  cuda_stand_in::LockedState state;
  for (const auto& [begin, reservation] : state->reservations) {
    const auto mapped = reservation.mapped.find(address);
    if (mapped == reservation.mapped.end()) continue;
    return mapped->second.writers.contains(device);
  }
  return false;
}
