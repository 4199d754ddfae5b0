#include "gpu/host_kv_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "gpu/host_page_checksummer.h"

namespace pando {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t ShardBytes(const KvLayout& layout, uint32_t capacity_pages) {
  return RoundUp(PoolBytes(layout, capacity_pages),
                 static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

absl::StatusOr<UniqueFd> MakeSealedMemory(uint64_t bytes) {
  UniqueFd fd(memfd_create("pando-kv", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrFormat("cannot size a shard to %u bytes", bytes));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
      0) {
    return absl::ErrnoToStatus(errno, "cannot seal a shard");
  }
  return fd;
}

// One byte for each writer; it need not be within the file.
struct flock LockOf(WriterId writer, int16_t type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(writer.value());
  lock.l_len = 1;
  return lock;
}

}  // namespace

// The system would grant any size now and kill the writers later.
absl::Status HostKvPool::CheckFits(const KvLayout& layout,
                                   uint32_t capacity_pages,
                                   uint32_t num_shards) {
  const uint64_t shard_bytes = ShardBytes(layout, capacity_pages);
  struct sysinfo info;
  if (sysinfo(&info) != 0) return absl::ErrnoToStatus(errno, "sysinfo");
  const uint64_t memory = uint64_t{info.totalram} * info.mem_unit;
  if (absl::uint128(shard_bytes) * num_shards <= memory) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the pool needs %u shards of %u bytes; this machine has %u bytes of "
      "memory",
      num_shards, shard_bytes, memory));
}

absl::StatusOr<std::unique_ptr<HostKvPool>> HostKvPool::Create(
    const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards) {
  if (num_shards < 1 || num_shards > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shards is %u; must be from 1 to %u", num_shards, kMaxShards));
  }
  ASSIGN_OR_RETURN(KvLayout layout, MakeKvLayout(shape, capacity_pages));
  RETURN_IF_ERROR(CheckFits(layout, capacity_pages, num_shards));
  const uint64_t shard_bytes = ShardBytes(layout, capacity_pages);

  std::vector<KvShard> shards;
  std::vector<UniqueFd> fds;
  for (uint32_t index = 0; index < num_shards; ++index) {
    ASSIGN_OR_RETURN(UniqueFd fd, MakeSealedMemory(shard_bytes));
    shards.push_back({index, "host", shard_bytes});
    fds.push_back(std::move(fd));
  }
  return absl::WrapUnique(new HostKvPool(layout, capacity_pages,
                                         std::move(shards), std::move(fds)));
}

HostKvPool::HostKvPool(const KvLayout& layout, uint32_t capacity_pages,
                       std::vector<KvShard> shards, std::vector<UniqueFd> fds)
    : KvPool(layout, capacity_pages, std::move(shards)), fds_(std::move(fds)) {}

absl::StatusOr<UniqueFd> HostKvPool::ExportShard(uint32_t index) const {
  if (index >= fds_.size()) {
    return absl::OutOfRangeError(absl::StrFormat(
        "shard is %u; the pool has %u shards", index, fds_.size()));
  }
  UniqueFd fd(fcntl(fds_[index].get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::ErrnoToStatus(errno, "cannot duplicate a shard's descriptor");
  }
  return fd;
}

absl::StatusOr<UniqueFd> HostKvPool::ExportShardTo(WriterId writer,
                                                   uint32_t index) const {
  ASSIGN_OR_RETURN(UniqueFd fd, ReopenedShard(index));
  struct flock lock = LockOf(writer, F_RDLCK);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "a shard cannot be locked for a writer: %s", std::strerror(errno)));
  }
  return fd;
}

// Opened anew, because a duplicate would be the same open file as ours.
absl::StatusOr<UniqueFd> HostKvPool::ReopenedShard(uint32_t index) const {
  if (index >= fds_.size()) {
    return absl::OutOfRangeError(absl::StrFormat(
        "shard is %u; the pool has %u shards", index, fds_.size()));
  }
  const std::string path =
      absl::StrFormat("/proc/self/fd/%d", fds_[index].get());
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::ErrnoToStatus(errno, "cannot open a shard of the pool again");
  }
  return fd;
}

std::optional<bool> HostKvPool::IsHeldBy(WriterId writer) const {
  return std::any_of(fds_.begin(), fds_.end(), [writer](const UniqueFd& fd) {
    struct flock lock = LockOf(writer, F_WRLCK);
    return fcntl(fd.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  });
}

absl::StatusOr<std::unique_ptr<PageChecksummer>> HostKvPool::MakeChecksummer()
    const {
  return HostPageChecksummer::Create(*this);
}

}  // namespace pando
