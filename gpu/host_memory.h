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
// process that holds it can change its size and make the others fault. This
// class does not touch the memory: the kernel provides a page when a worker
// first writes to it.
//
// Each writer gets an open file description of its own, with a lock on the byte
// whose offset is the writer's number. The lock lives as long as the open file
// description: until its last descriptor and its last mapping are gone in all
// processes. So IsHeldBy needs only to test the lock.
//
// Move-only. Immutable after creation, so any thread may call it.
class HostMemory {
 public:
  // `name` is for error messages, such as "a shard of the pool".
  static absl::StatusOr<HostMemory> Create(std::string name, uint64_t bytes);

  // Takes over memory that an earlier process made by Create. The locks of its
  // writers are still there; see LastWriter. FAILED_PRECONDITION if the
  // descriptor is not one of such memory or the memory has another size.
  static absl::StatusOr<HostMemory> Adopt(std::string name, uint64_t bytes,
                                          UniqueFd fd);

  uint64_t bytes() const { return bytes_; }
  // The number of its inode. No other memory of this machine has the same id
  // while this one exists.
  uint64_t id() const;
  // This process's own descriptor, to be kept for the next process.
  const UniqueFd& fd() const { return fd_; }

  // Makes a close-on-exec descriptor, which also keeps the memory alive.
  absl::StatusOr<UniqueFd> Export() const;
  // The same for a writer: from now on IsHeldBy(writer) works. One writer may
  // have any number of exports. FAILED_PRECONDITION if another process that
  // holds the memory has taken the writer's lock.
  absl::StatusOr<UniqueFd> ExportTo(WriterId writer) const;
  // Whether any process still holds a descriptor or a mapping that came from an
  // export to the writer, even by inheritance (fork).
  bool IsHeldBy(WriterId writer) const;

  // The highest number of a writer that holds the memory; 0 if there is none.
  // FAILED_PRECONDITION if another process has locked bytes of the memory in a
  // way that this class does not.
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
