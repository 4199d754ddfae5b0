// The functions of this folder in a build without the CUDA toolkit.
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/transfers.h"

namespace pando::cuda {
namespace {

absl::Status NotBuilt() {
  return absl::FailedPreconditionError(
      "this program was built without the CUDA toolkit, so it cannot use GPUs");
}

}  // namespace

std::string ToString(const Device& device) { return device.uuid; }

absl::StatusOr<Device> FindDevice(const std::string&) { return NotBuilt(); }

absl::StatusOr<uint64_t> TotalBytes(const Device&) { return NotBuilt(); }

absl::StatusOr<uint64_t> FreeBytes(const Device&) { return NotBuilt(); }

absl::StatusOr<Memory> Memory::Allocate(const Device&, uint64_t) {
  return NotBuilt();
}

absl::StatusOr<Memory> Memory::Import(const Device&, int, uint64_t) {
  return NotBuilt();
}

absl::StatusOr<int> Memory::Export() const { return NotBuilt(); }

absl::StatusOr<Mapping> Mapping::Map(const Memory&, std::byte*, Addresses) {
  return NotBuilt();
}

absl::Status Mapping::Zero() const { return NotBuilt(); }

class Transfers::State {};

Transfers::~Transfers() = default;

absl::StatusOr<std::unique_ptr<Transfers>> Transfers::Make(
    const Device&, std::span<std::byte>) {
  return NotBuilt();
}

absl::Status Transfers::Begin(const Rows&, Direction) { return NotBuilt(); }

absl::Status Transfers::MarkEnd(Direction, uint64_t) { return NotBuilt(); }

absl::StatusOr<std::vector<uint64_t>> Transfers::TakeReached() {
  return NotBuilt();
}

}  // namespace pando::cuda
