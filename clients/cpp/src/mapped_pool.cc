#include "pando/mapped_pool.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/src/file_descriptor.h"

namespace pando {
inline namespace client {
namespace {

absl::StatusOr<std::span<std::byte>> MapShard(const FileDescriptor& fd,
                                              uint64_t size_bytes) {
  struct stat file = {};
  if (fstat(fd.get(), &file) != 0) return absl::ErrnoToStatus(errno, "fstat");
  // A mapping beyond the end of the file would fault when it is used.
  if (static_cast<uint64_t>(file.st_size) < size_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory of ", file.st_size, " bytes, the pool says ", size_bytes));
  }
  void* base = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
  if (base == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return std::span(static_cast<std::byte*>(base), size_bytes);
}

}  // namespace

MappedPool::MappedPool(PoolDescription pool, uint64_t epoch)
    : pool_(std::move(pool)), epoch_(epoch) {}

absl::StatusOr<MappedPool> MappedPool::Map(
    PoolDescription pool, uint64_t epoch,
    const std::vector<FileDescriptor>& descriptors) {
  if (descriptors.size() != pool.shards.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(descriptors.size(), " descriptors for a pool of ",
                     pool.shards.size(), " shards"));
  }
  MappedPool mapped(std::move(pool), epoch);
  for (size_t i = 0; i < descriptors.size(); ++i) {
    absl::StatusOr<std::span<std::byte>> shard =
        MapShard(descriptors[i], mapped.pool_.shards[i].size_bytes);
    if (!shard.ok()) {
      return absl::Status(
          shard.status().code(),
          absl::StrCat("shard ", i, ": ", shard.status().message()));
    }
    mapped.shards_.push_back(*shard);
  }
  return mapped;
}

MappedPool& MappedPool::operator=(MappedPool&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  pool_ = std::move(other.pool_);
  epoch_ = other.epoch_;
  shards_ = std::exchange(other.shards_, {});
  return *this;
}

MappedPool::~MappedPool() { Unmap(); }

void MappedPool::Unmap() {
  for (const std::span<std::byte> shard : shards_) {
    munmap(shard.data(), shard.size());
  }
}

}  // namespace client
}  // namespace pando
