// Memory without an address: made, shared and given back.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "tests/support/cuda_stand_in/call.h"

using cuda_stand_in::Call;
using cuda_stand_in::kGrain;
using cuda_stand_in::Memory;
using cuda_stand_in::State;

namespace {

// The memfd's name, by which an imported descriptor is known.
constexpr char kName[] = "cuda_stand_in_device_";

CUresult Check(const State& state, const CUmemAllocationProp* properties) {
  if (properties == nullptr ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!state.HasDevice(properties->location.id)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  if (properties->requestedHandleTypes !=
          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      !state.settings.shares) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// Takes the descriptor.
std::shared_ptr<const Memory> MemoryOf(int fd, int device) {
  struct stat file = {};
  fstat(fd, &file);
  return std::make_shared<const Memory>(fd, file.st_ino, device,
                                        static_cast<size_t>(file.st_size));
}

// The device whose memory this descriptor is; -1: it is something else.
int DeviceOf(int fd) {
  char target[256] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) return -1;
  int device = -1;
  std::sscanf(target, "/memfd:cuda_stand_in_device_%d", &device);
  return device;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* grain,
                                       const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  return Call("cuMemGetAllocationGranularity", [&](State& state) {
    if (grain == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult valid = Check(state, properties);
    if (valid == CUDA_SUCCESS) *grain = kGrain;
    return valid;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return Call("cuMemCreate", [&](State& state) {
    const CUresult valid = Check(state, properties);
    if (valid != CUDA_SUCCESS) return valid;
    if (handle == nullptr || size == 0 || size % kGrain != 0 || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int device = properties->location.id;
    if (size > state.FreeBytes(device)) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::string name = kName + std::to_string(device);
    const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
      close(fd);
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *handle = state.Keep(MemoryOf(fd, device));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Call("cuMemRelease", [&](State& state) {
    return state.handles.erase(handle) == 1 ? CUDA_SUCCESS
                                            : CUDA_ERROR_INVALID_VALUE;
  });
}

// The descriptor is not closed on exec: who wants that has to ask for it.
CUresult cuMemExportToShareableHandle(void* descriptor,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  return Call("cuMemExportToShareableHandle", [&](State& state) {
    const auto memory = state.handles.find(handle);
    if (descriptor == nullptr || memory == state.handles.end() ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = dup(memory->second->fd());
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    std::memcpy(descriptor, &fd, sizeof(fd));
    return CUDA_SUCCESS;
  });
}

// `descriptor` is the number itself, not its address; it stays the caller's.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* descriptor,
                                        CUmemAllocationHandleType type) {
  return Call("cuMemImportFromShareableHandle", [&](State& state) {
    const int fd = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
    const int device = DeviceOf(fd);
    if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        device < 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!state.HasDevice(device)) return CUDA_ERROR_NOT_SUPPORTED;
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *handle = state.Keep(MemoryOf(own, device));
    return CUDA_SUCCESS;
  });
}
