#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cuda_stand_in/driver_api.h"
#include "tests/support/cuda_stand_in/settings.h"

namespace cuda_stand_in {

// Sizes and addresses of memory are multiples of kGrain, as on today's GPUs.
constexpr size_t kGrain = size_t{2} << 20;

// Memory of a device, which is a memfd. It lives as long as any process has a
// descriptor or a mapping of it, as with the real driver.
class Memory {
 public:
  // Takes over the descriptor.
  Memory(int fd, ino_t inode, int device, size_t size)
      : fd_(fd), inode_(inode), device_(device), size_(size) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  int fd() const { return fd_; }
  // Returns a number that is the same for all descriptors of one memory.
  ino_t inode() const { return inode_; }
  int device() const { return device_; }
  size_t size() const { return size_; }

 private:
  const int fd_;
  const ino_t inode_;
  const int device_;
  const size_t size_;
};

// Addresses that were reserved by an mmap without access.
struct Reservation {
  size_t size = 0;
  // Memory that is mapped over a part of the reservation.
  struct Mapped {
    size_t size = 0;
    std::shared_ptr<const Memory> memory;
    // The devices that may read the memory, and those that may write it.
    std::set<int> readers;
    std::set<int> writers;
  };
  std::map<CUdeviceptr, Mapped> mapped;
};

// A step that waits on a stream: a copy, or an event that is to happen.
struct Step {
  enum class Kind { kFromDevice, kToDevice, kEvent };

  Kind kind;
  std::function<void()> run;
};

struct Event {
  // Null if the event was never recorded.
  CUstream stream = nullptr;
  bool has_happened = false;
  bool was_asked = false;
};

// Everything that the driver knows in this process. The mutex of Call() guards
// it.
struct State {
  Settings settings = SettingsOfEnvironment();
  std::map<std::string, int> calls;
  // The process that called cuInit; a forked child may not use the driver.
  pid_t initialised_by = 0;
  // How many references to the primary context of each device there are.
  std::vector<int> contexts = std::vector<int>(settings.devices.size());
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<const Memory>> handles;
  CUmemGenericAllocationHandle next_handle = 1;
  std::map<CUdeviceptr, Reservation> reservations;
  // The sizes of pinned host memory, by the addresses.
  std::map<uintptr_t, size_t> pinned;
  std::map<CUstream, std::deque<Step>> streams;
  uintptr_t last_stream = 0;
  std::map<CUevent, Event> events;
  uintptr_t last_event = 0;
  // The kinds of copies that are not made now, as if they took long.
  std::set<Step::Kind> held_back;

  bool HasDevice(int device) const {
    return device >= 0 && device < static_cast<int>(settings.devices.size());
  }
  // Returns how much memory of the device is free. Only this process counts,
  // with the memory that it holds by handles and by mappings.
  uint64_t FreeBytes(int device) const;
  CUmemGenericAllocationHandle Keep(std::shared_ptr<const Memory> memory);
};

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_
