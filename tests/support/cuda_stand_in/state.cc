#include "tests/support/cuda_stand_in/state.h"

#include <unistd.h>

namespace cuda_stand_in {

Memory::~Memory() { close(fd_); }

uint64_t State::FreeBytes(int device) const {
  std::map<ino_t, uint64_t> held;
  const auto add = [&](const Memory& memory) {
    if (memory.device() == device) held[memory.inode()] = memory.size();
  };
  for (const auto& [handle, memory] : handles) add(*memory);
  for (const auto& [begin, reservation] : reservations) {
    for (const auto& [at, mapped] : reservation.mapped) add(*mapped.memory);
  }
  uint64_t free = settings.device_bytes;
  for (const auto& [inode, size] : held) free -= size;
  return free;
}

CUmemGenericAllocationHandle State::Keep(std::shared_ptr<const Memory> memory) {
  handles.emplace(next_handle, std::move(memory));
  return next_handle++;
}

}  // namespace cuda_stand_in
