// Makes memory that has no address yet, shares it, and gives it back.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda_stand_in/call.h"

using cuda_stand_in::Call;
using cuda_stand_in::kGrain;
using cuda_stand_in::Memory;
using cuda_stand_in::State;

namespace {

// The memfd of a device's memory has a name that begins with kName, followed by
// the number of the device on the machine. The name ends with kRdma if network
// cards reach the memory. An imported descriptor is recognized by the name.
constexpr char kName[] = "cuda_stand_in_device_";
constexpr char kRdma[] = "_rdma";
// New memory may hold anything. These bytes are NaN in each dtype.
constexpr int kAnything = 0xff;

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
  const bool wants_rdma = properties->allocFlags.gpuDirectRDMACapable != 0;
  return wants_rdma && !state.settings.has_rdma ? CUDA_ERROR_NOT_SUPPORTED
                                                : CUDA_SUCCESS;
}

// Makes and fills a memfd. Returns -1 if the system does not give one.
int MakeFile(const std::string& name, size_t size) {
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd < 0) return -1;
  void* const bytes =
      ftruncate(fd, static_cast<off_t>(size)) == 0
          ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
          : MAP_FAILED;
  if (bytes == MAP_FAILED) {
    close(fd);
    return -1;
  }
  std::memset(bytes, kAnything, size);
  munmap(bytes, size);
  return fd;
}

// Takes over the descriptor.
std::shared_ptr<const Memory> MemoryOf(int fd, int device) {
  struct stat file = {};
  fstat(fd, &file);
  return std::make_shared<const Memory>(fd, file.st_ino, device,
                                        static_cast<size_t>(file.st_size));
}

// Returns the device that has the memory of this descriptor. Returns -1 if the
// descriptor is something else, or if this process does not see the device.
int DeviceOf(const State& state, int fd) {
  char target[256] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) return -1;
  int number = -1;
  std::sscanf(target, "/memfd:cuda_stand_in_device_%d", &number);
  const std::vector<int>& devices = state.settings.devices;
  const auto device = std::ranges::find(devices, number);
  return device == devices.end() ? -1
                                 : static_cast<int>(device - devices.begin());
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
    std::string name = kName + std::to_string(state.settings.devices[device]);
    if (properties->allocFlags.gpuDirectRDMACapable != 0) name += kRdma;
    const int fd = MakeFile(name, size);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
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

// The descriptor stays open across exec unless the caller changes that flag.
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

// `descriptor` is the number of the descriptor itself, not the address of the
// number. The caller keeps the descriptor.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* descriptor,
                                        CUmemAllocationHandleType type) {
  return Call("cuMemImportFromShareableHandle", [&](State& state) {
    const int fd = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
    const int device = DeviceOf(state, fd);
    if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        device < 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *handle = state.Keep(MemoryOf(own, device));
    return CUDA_SUCCESS;
  });
}
