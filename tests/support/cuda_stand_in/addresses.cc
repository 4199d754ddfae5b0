// Reserves addresses, maps memory there, sets the access to it, and undoes all
// of this. Unlike the addresses of a GPU, these can be read and written by the
// CPU.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <iterator>

#include "tests/support/cuda_stand_in/call.h"
#include "tests/support/cuda_stand_in/contexts.h"

using cuda_stand_in::Call;
using cuda_stand_in::kGrain;
using cuda_stand_in::Memory;
using cuda_stand_in::Reservation;
using cuda_stand_in::State;

namespace {

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Returns the reservation that contains [address, address + size), or null.
Reservation* ReservationOf(State& state, CUdeviceptr address, size_t size) {
  auto after = state.reservations.upper_bound(address);
  if (after == state.reservations.begin()) return nullptr;
  auto& [begin, reservation] = *std::prev(after);
  return address + size <= begin + reservation.size ? &reservation : nullptr;
}

bool IsMapped(const Reservation& reservation, CUdeviceptr address,
              size_t size) {
  for (const auto& [begin, mapped] : reservation.mapped) {
    if (begin < address + size && address < begin + mapped.size) return true;
  }
  return false;
}

// Returns the memory that is mapped at exactly these addresses, or null.
Reservation::Mapped* MappedAt(Reservation* reservation, CUdeviceptr address,
                              size_t size) {
  if (reservation == nullptr) return nullptr;
  const auto mapped = reservation->mapped.find(address);
  const bool is_whole =
      mapped != reservation->mapped.end() && mapped->second.size == size;
  return is_whole ? &mapped->second : nullptr;
}

CUresult SetAccess(const State& state, Reservation::Mapped& mapped,
                   const CUmemAccessDesc& access) {
  if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = access.location.id;
  const bool is_near = device == mapped.memory->device();
  if (!state.HasDevice(device) || (!is_near && !state.settings.has_peers)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  mapped.readers.erase(device);
  mapped.writers.erase(device);
  if (access.flags & CU_MEM_ACCESS_FLAGS_PROT_READ) {
    mapped.readers.insert(device);
  }
  if (access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    mapped.writers.insert(device);
  }
  return CUDA_SUCCESS;
}

void* ReserveWithoutAccess(void* wanted, size_t size, int flags) {
  return mmap(wanted, size, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

// Reserves `size` bytes at a multiple of kGrain: at `wanted` if that address is
// free and not 0, else elsewhere. Returns 0 if there is no such place.
CUdeviceptr Reserve(CUdeviceptr wanted, size_t size) {
  if (wanted != 0) {
    void* const there = ReserveWithoutAccess(Pointer(wanted), size, 0);
    if (there == Pointer(wanted)) return wanted;
    if (there != MAP_FAILED) munmap(there, size);
  }
  void* const wide = ReserveWithoutAccess(nullptr, size + kGrain, 0);
  if (wide == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<CUdeviceptr>(wide);
  const CUdeviceptr aligned = (begin + kGrain - 1) / kGrain * kGrain;
  if (aligned > begin) munmap(wide, aligned - begin);
  munmap(Pointer(aligned + size), begin + kGrain - aligned);
  return aligned;
}

CUdeviceptr ReserveElsewhere(CUdeviceptr unwanted, size_t size) {
  const CUdeviceptr first = Reserve(0, size);
  if (first != unwanted) return first;
  const CUdeviceptr second = Reserve(0, size);
  munmap(Pointer(first), size);
  return second;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size,
                             size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
  return Call("cuMemAddressReserve", [&](State& state) {
    if (address == nullptr || size == 0 || size % kGrain != 0 ||
        wanted % kGrain != 0 || alignment > kGrain || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUdeviceptr reserved = state.settings.ignores_addresses
                                     ? ReserveElsewhere(wanted, size)
                                     : Reserve(wanted, size);
    if (reserved == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    state.reservations[reserved] = {.size = size, .mapped = {}};
    *address = reserved;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return Call("cuMemAddressFree", [&](State& state) {
    const auto reservation = state.reservations.find(address);
    if (reservation == state.reservations.end() ||
        reservation->second.size != size ||
        !reservation->second.mapped.empty()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(Pointer(address), size);
    state.reservations.erase(reservation);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return Call("cuMemMap", [&](State& state) {
    Reservation* const reservation = ReservationOf(state, address, size);
    const auto memory = state.handles.find(handle);
    if (reservation == nullptr || memory == state.handles.end() || size == 0 ||
        size % kGrain != 0 || size > memory->second->size() || offset != 0 ||
        flags != 0 || IsMapped(*reservation, address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (mmap(Pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED,
             memory->second->fd(), 0) == MAP_FAILED) {
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    reservation->mapped[address] = {
        .size = size, .memory = memory->second, .readers = {}, .writers = {}};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  return Call("cuMemUnmap", [&](State& state) {
    Reservation* const reservation = ReservationOf(state, address, size);
    if (MappedAt(reservation, address, size) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ReserveWithoutAccess(Pointer(address), size, MAP_FIXED);
    reservation->mapped.erase(address);
    return CUDA_SUCCESS;
  });
}

// The CPU stands for all GPUs, so it gets each access that any of them has.
CUresult cuMemSetAccess(CUdeviceptr address, size_t size,
                        const CUmemAccessDesc* access, size_t count) {
  return Call("cuMemSetAccess", [&](State& state) {
    Reservation::Mapped* const mapped =
        MappedAt(ReservationOf(state, address, size), address, size);
    if (access == nullptr || mapped == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      const CUresult result = SetAccess(state, *mapped, access[i]);
      if (result != CUDA_SUCCESS) return result;
    }
    const int protection = (mapped->readers.empty() ? PROT_NONE : PROT_READ) |
                           (mapped->writers.empty() ? PROT_NONE : PROT_WRITE);
    return mprotect(Pointer(address), size, protection) == 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

CUresult cuMemsetD8(CUdeviceptr address, unsigned char value, size_t count) {
  return Call("cuMemsetD8", [&](State& state) {
    if (cuda_stand_in::CurrentDevice(state) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    Reservation* const reservation = ReservationOf(state, address, count);
    if (MappedAt(reservation, address, count) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::memset(Pointer(address), value, count);
    return CUDA_SUCCESS;
  });
}
