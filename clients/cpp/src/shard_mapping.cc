#include "clients/cpp/src/shard_mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cuda/memory.h"

namespace pando {
inline namespace client {
namespace {

absl::StatusOr<ShardMapping> MapHostMemory(const Shard& shard,
                                           const UniqueFd& descriptor,
                                           std::byte* wanted) {
  const uint64_t size = shard.size_bytes;
  struct stat file = {};
  if (fstat(descriptor.get(), &file) != 0) {
    return absl::ErrnoToStatus(errno, "fstat");
  }
  // A mapping beyond the end of the file would fault when it is used.
  if (static_cast<uint64_t>(file.st_size) < size) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory of ", file.st_size, " bytes, the pool says ", size));
  }
  const int flags = MAP_SHARED | (wanted == nullptr ? 0 : MAP_FIXED_NOREPLACE);
  void* const base =
      mmap(wanted, size, PROT_READ | PROT_WRITE, flags, descriptor.get(), 0);
  if (base == MAP_FAILED && errno == EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrFormat("address %p is not to be had", wanted));
  }
  if (base == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return ShardMapping{
      .bytes = std::span(static_cast<std::byte*>(base), size),
      .owner = std::shared_ptr<const void>(
          base, [base, size](const void*) { munmap(base, size); })};
}

absl::StatusOr<ShardMapping> MapGpuMemory(const Shard& shard,
                                          const std::string& uuid,
                                          const UniqueFd& descriptor,
                                          std::byte* wanted) {
  ASSIGN_OR_RETURN(const cuda::Device device, cuda::FindDevice(uuid));
  ASSIGN_OR_RETURN(
      const cuda::Memory memory,
      cuda::Memory::Import(device, descriptor.get(), shard.size_bytes));
  ASSIGN_OR_RETURN(cuda::Mapping mapping,
                   cuda::Mapping::Map(memory, wanted, cuda::Addresses::kKept));
  const std::span<std::byte> bytes = mapping.bytes();
  return ShardMapping{
      .bytes = bytes,
      .owner = std::make_shared<const cuda::Mapping>(std::move(mapping))};
}

}  // namespace

absl::StatusOr<ShardMapping> MapShard(const Shard& shard,
                                      const UniqueFd& descriptor,
                                      std::byte* wanted) {
  absl::string_view device = shard.device;
  if (absl::ConsumePrefix(&device, "cuda:")) {
    return MapGpuMemory(shard, std::string(device), descriptor, wanted);
  }
  if (device == "host") return MapHostMemory(shard, descriptor, wanted);
  return absl::UnimplementedError(absl::StrCat(
      "memory on '", shard.device, "', which this client does not know"));
}

}  // namespace client
}  // namespace pando
