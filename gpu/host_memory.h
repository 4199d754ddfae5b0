#ifndef PANDO_GPU_HOST_MEMORY_H_
#define PANDO_GPU_HOST_MEMORY_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/unique_fd.h"

namespace pando {

// Host memory that pandod shares with workers: a memfd, sealed so that no
// holder can change its size and make the others fault. The memory is not
// touched here: the kernel provides a page when a worker first writes to it.
//
// Each writer gets an open file description of its own, with a lock on the byte
// whose offset is the writer's number. The lock lives as long as the open file
// description: until the last descriptor and the last mapping of it are gone,
// in whichever process. So IsHeldBy needs only to test the lock.
//
// Move-only. Immutable after creation, so any thread may call it.
class HostMemory {
 public:
  // `name` is for errors: "a shard of the pool", say.
  static absl::StatusOr<HostMemory> Create(std::string name, uint64_t bytes);

  // Takes over memory that was made so, of a process before this one. The locks
  // in it live on: LastWriter tells of its writers. FAILED_PRECONDITION: the
  // descriptor is not of such memory, or that has another size.
  static absl::StatusOr<HostMemory> Adopt(std::string name, uint64_t bytes,
                                          UniqueFd fd);

  uint64_t bytes() const { return bytes_; }
  // No other memory of this machine has it meanwhile: the number of its inode.
  uint64_t id() const;
  // Another descriptor of ours, for the process after this one.
  const UniqueFd& fd() const { return fd_; }

  // Makes a close-on-exec descriptor, which keeps the memory alive.
  absl::StatusOr<UniqueFd> Export() const;
  // The same for a writer: IsHeldBy tells of this writer from now on. One
  // writer may have any number of exports. FAILED_PRECONDITION: the memory
  // cannot tell of this writer, because another process that holds it has taken
  // the writer's lock.
  absl::StatusOr<UniqueFd> ExportTo(WriterId writer) const;
  // Whether any process still holds a descriptor or a mapping that came from an
  // export to the writer, even by inheritance (fork).
  bool IsHeldBy(WriterId writer) const;

  // The highest number of a writer that holds the memory; 0: there is none.
  // FAILED_PRECONDITION: a process that holds it has locked what only we lock.
  absl::StatusOr<WriterId> LastWriter() const;
  // Whether any writer up to this one holds the memory.
  bool IsHeldByAnyUpTo(WriterId last) const;

 private:
  HostMemory(std::string name, uint64_t bytes, UniqueFd fd)
      : name_(std::move(name)), bytes_(bytes), fd_(std::move(fd)) {}

  std::string name_;
  uint64_t bytes_;
  UniqueFd fd_;
};

}  // namespace pando

#endif  // PANDO_GPU_HOST_MEMORY_H_
