#include "cuda/address_range.h"

#include <map>
#include <mutex>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando::cuda {
namespace {

// The kept ranges that are not in use: their sizes in bytes, by their
// beginning.
struct Unused {
  std::mutex mutex;
  std::map<CUdeviceptr, size_t> bytes;
};

Unused& AllUnused() {
  // Never deleted: used until the process ends.
  static auto* const unused = new Unused();
  return *unused;
}

// Takes a kept range of this size, at `wanted` unless that is 0. Returns where
// it begins, or 0 if there is none.
CUdeviceptr TakeUnused(size_t bytes, CUdeviceptr wanted) {
  Unused& unused = AllUnused();
  const std::lock_guard lock(unused.mutex);
  for (auto it = unused.bytes.begin(); it != unused.bytes.end(); ++it) {
    const CUdeviceptr begin = it->first;
    if (it->second != bytes || (wanted != 0 && begin != wanted)) continue;
    unused.bytes.erase(it);
    return begin;
  }
  return 0;
}

}  // namespace

absl::StatusOr<AddressRange> AddressRange::Reserve(const Driver& driver,
                                                   const Device& device,
                                                   size_t bytes,
                                                   CUdeviceptr wanted,
                                                   Addresses afterwards) {
  if (const CUdeviceptr unused = TakeUnused(bytes, wanted); unused != 0) {
    return AddressRange(&driver, unused, bytes, afterwards);
  }
  CUdeviceptr begin = 0;
  RETURN_IF_ERROR(
      ToStatus(driver.cuMemAddressReserve(&begin, bytes, 0, wanted, 0),
               "cuMemAddressReserve", device));
  // To the driver, the address is only a hint.
  if (wanted != 0 && begin != wanted) {
    driver.cuMemAddressFree(begin, bytes);
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: address %#x is not to be had; the driver gives %#x instead",
        ToString(device), wanted, begin));
  }
  return AddressRange(&driver, begin, bytes, afterwards);
}

AddressRange::~AddressRange() {
  if (begin_ == 0) return;
  if (afterwards_ == Addresses::kFreed) {
    driver_->cuMemAddressFree(begin_, bytes_);
    return;
  }
  Unused& unused = AllUnused();
  const std::lock_guard lock(unused.mutex);
  unused.bytes.emplace(begin_, bytes_);
}

}  // namespace pando::cuda
