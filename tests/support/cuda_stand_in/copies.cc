// Implements streams, pinned host memory, and copies between that memory and a
// device. A copy is made only when its stream is waited for, or when an event
// that was recorded after the copy is queried for at least the second time.
#include "tests/support/cuda_stand_in/copies.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <thread>

#include "tests/support/cuda_stand_in/call.h"
#include "tests/support/cuda_stand_in/contexts.h"

using cuda_stand_in::Call;
using cuda_stand_in::Event;
using cuda_stand_in::State;
using cuda_stand_in::Step;

namespace {

bool IsPinned(const State& state, const void* host, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(host);
  auto after = state.pinned.upper_bound(begin);
  if (after == state.pinned.begin()) return false;
  const auto& [pinned, pinned_size] = *std::prev(after);
  return begin + size <= pinned + pinned_size;
}

// Returns whether these addresses are mapped in one piece, and the current
// device may write there.
bool IsDeviceMemory(const State& state, CUdeviceptr address, size_t size) {
  for (const auto& [_, reservation] : state.reservations) {
    for (const auto& [begin, mapped] : reservation.mapped) {
      if (begin <= address && address + size <= begin + mapped.size) {
        return mapped.writers.contains(cuda_stand_in::CurrentDevice(state));
      }
    }
  }
  return false;
}

// Rows to copy between a device and pinned memory. A real driver takes other
// host memory, too, but copies it while the caller waits. The stand-in refuses
// such memory.
struct Rows {
  std::byte* to;
  size_t to_pitch;
  const std::byte* from;
  size_t from_pitch;
  size_t width;
  size_t height;
};

size_t Extent(size_t pitch, const Rows& rows) {
  return rows.height == 0 ? 0 : pitch * (rows.height - 1) + rows.width;
}

CUresult Enqueue(State& state, CUstream stream, const Rows& rows,
                 bool is_to_device) {
  const auto queue = state.streams.find(stream);
  if (queue == state.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (cuda_stand_in::CurrentDevice(state) < 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  const std::byte* const device = is_to_device ? rows.to : rows.from;
  const std::byte* const host = is_to_device ? rows.from : rows.to;
  const size_t device_pitch = is_to_device ? rows.to_pitch : rows.from_pitch;
  const size_t host_pitch = is_to_device ? rows.from_pitch : rows.to_pitch;
  if (!IsDeviceMemory(state, reinterpret_cast<CUdeviceptr>(device),
                      Extent(device_pitch, rows)) ||
      !IsPinned(state, host, Extent(host_pitch, rows))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto copy = [rows] {
    for (size_t i = 0; i < rows.height; ++i) {
      std::memcpy(rows.to + i * rows.to_pitch, rows.from + i * rows.from_pitch,
                  rows.width);
    }
  };
  queue->second.push_back(
      {.kind = is_to_device ? Step::Kind::kToDevice : Step::Kind::kFromDevice,
       .run = copy});
  return CUDA_SUCCESS;
}

// Carries out the steps that wait on a stream, until one is held back.
void Advance(State& state, CUstream stream) {
  std::deque<Step>& steps = state.streams[stream];
  while (!steps.empty() && !state.held_back.contains(steps.front().kind)) {
    steps.front().run();
    steps.pop_front();
  }
}

std::byte* Pointer(CUdeviceptr address) {
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace

CUresult cuMemHostRegister(void* host, size_t size, unsigned flags) {
  return Call("cuMemHostRegister", [&](State& state) {
    if (cuda_stand_in::CurrentDevice(state) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (host == nullptr || size == 0 || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto [_, is_new] =
        state.pinned.emplace(reinterpret_cast<uintptr_t>(host), size);
    return is_new ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

CUresult cuMemHostUnregister(void* host) {
  return Call("cuMemHostUnregister", [&](State& state) {
    return state.pinned.erase(reinterpret_cast<uintptr_t>(host)) == 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return Call("cuStreamCreate", [&](State& state) {
    if (stream == nullptr || flags != CU_STREAM_NON_BLOCKING) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (cuda_stand_in::CurrentDevice(state) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    *stream = reinterpret_cast<CUstream>(++state.last_stream);
    state.streams[*stream];
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream stream) {
  return Call("cuStreamDestroy", [&](State& state) {
    return state.streams.erase(stream) == 1 ? CUDA_SUCCESS
                                            : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  const auto advance = [&](State& state) {
    if (!state.streams.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
    Advance(state, stream);
    return state.streams[stream].empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  while (true) {
    const CUresult result = Call("cuStreamSynchronize", advance);
    if (result != CUDA_ERROR_NOT_READY) return result;
    std::this_thread::yield();
  }
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return Call("cuEventCreate", [&](State& state) {
    if (event == nullptr || flags != CU_EVENT_DISABLE_TIMING) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (cuda_stand_in::CurrentDevice(state) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    *event = reinterpret_cast<CUevent>(++state.last_event);
    state.events[*event];
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent event) {
  return Call("cuEventDestroy", [&](State& state) {
    return state.events.erase(event) == 1 ? CUDA_SUCCESS
                                          : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return Call("cuEventRecord", [&](State& state) {
    if (!state.events.contains(event) || !state.streams.contains(stream)) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    state.events[event] = {.stream = stream};
    const auto happen = [&state, event] {
      if (const auto found = state.events.find(event);
          found != state.events.end()) {
        found->second.has_happened = true;
      }
    };
    state.streams[stream].push_back(
        {.kind = Step::Kind::kEvent, .run = happen});
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent event) {
  return Call("cuEventQuery", [&](State& state) {
    const auto found = state.events.find(event);
    if (found == state.events.end() || found->second.stream == nullptr) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    Event& asked = found->second;
    if (!asked.was_asked) {
      asked.was_asked = true;
      return CUDA_ERROR_NOT_READY;
    }
    Advance(state, asked.stream);
    return asked.has_happened ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size,
                           CUstream stream) {
  return Call("cuMemcpyDtoHAsync", [&](State& state) {
    return Enqueue(state, stream,
                   {.to = static_cast<std::byte*>(to),
                    .to_pitch = size,
                    .from = Pointer(from),
                    .from_pitch = size,
                    .width = size,
                    .height = 1},
                   false);
  });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size,
                           CUstream stream) {
  return Call("cuMemcpyHtoDAsync", [&](State& state) {
    return Enqueue(state, stream,
                   {.to = Pointer(to),
                    .to_pitch = size,
                    .from = static_cast<const std::byte*>(from),
                    .from_pitch = size,
                    .width = size,
                    .height = 1},
                   true);
  });
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Call("cuMemcpy2DAsync", [&](State& state) {
    const bool is_to_device = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE;
    if (is_to_device == (copy->srcMemoryType == CU_MEMORYTYPE_DEVICE) ||
        copy->srcPitch > state.settings.max_pitch ||
        copy->dstPitch > state.settings.max_pitch ||
        copy->srcPitch < copy->WidthInBytes ||
        copy->dstPitch < copy->WidthInBytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Enqueue(
        state, stream,
        {.to = is_to_device ? Pointer(copy->dstDevice)
                            : static_cast<std::byte*>(copy->dstHost),
         .to_pitch = copy->dstPitch,
         .from = is_to_device ? static_cast<const std::byte*>(copy->srcHost)
                              : Pointer(copy->srcDevice),
         .from_pitch = copy->srcPitch,
         .width = copy->WidthInBytes,
         .height = copy->Height},
        is_to_device);
  });
}

CUresult cuda_stand_in::MemcpyBatchAsync(
    CUdeviceptr* targets, CUdeviceptr* sources, size_t* sizes, size_t count,
    CopyAttributes* attributes, size_t* first_with_attributes,
    size_t attributes_count, size_t* refused, CUstream stream) {
  return Call("cuMemcpyBatchAsync", [&](State& state) {
    constexpr int kInStreamOrder = 1;
    if (attributes_count != 1 || first_with_attributes[0] != 0 ||
        attributes[0].source_access_order != kInStreamOrder) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
      const CUresult result =
          Enqueue(state, stream,
                  {.to = Pointer(targets[i]),
                   .to_pitch = sizes[i],
                   .from = Pointer(sources[i]),
                   .from_pitch = sizes[i],
                   .width = sizes[i],
                   .height = 1},
                  IsDeviceMemory(state, targets[i], sizes[i]));
      if (result != CUDA_SUCCESS) {
        *refused = i;
        return result;
      }
    }
    return CUDA_SUCCESS;
  });
}
