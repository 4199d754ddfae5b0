#ifndef PANDO_SERVICE_MEMORY_ATTACHMENTS_H_
#define PANDO_SERVICE_MEMORY_ATTACHMENTS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "core/prefix_cache.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"
#include "service/memory/attach_tokens.h"
#include "service/memory/process_watcher.h"
#include "service/memory/shared_descriptor.h"

namespace pando {

// Knows which processes have mapped the pool or the block memory for which
// session, and tells the cache when they are gone. Only then does the cache
// give the pages and blocks of a lost session to others. Owned by Server;
// thread-safe.
//
// A writer is a process that attached, together with all processes that it
// passed the memory on to, by fork or otherwise. A pidfd reports the end of the
// process. Host memory itself can tell whether any process still holds it. It
// is asked about heirs of the process, about processes that are not visible
// from here, and about mappings that a living process has given up.
class Attachments {
 public:
  // All pointers outlive it. `block_memory` is null if there is none. Writers
  // get the numbers after `last_writer`, which is the last writer of the pandod
  // before.
  static absl::StatusOr<std::unique_ptr<Attachments>> Start(
      PrefixCache* cache, const KvPool* pool, const HostMemory* block_memory,
      WriterId last_writer = WriterId(0));

  // Records the process `pid` as a writer. Returns descriptors for it: one of
  // each shard of the pool, or one of the block memory. `pid` is 0 if the
  // process is not visible in this PID namespace. Returns FAILED_PRECONDITION
  // if the session is over, and UNAVAILABLE if a descriptor cannot be made.
  // REQUIRES: the grant is for memory that exists.
  absl::StatusOr<std::vector<SharedDescriptor>> Attach(const AttachGrant& grant,
                                                       pid_t pid);

  // Records a writer that an earlier pandod had attached to the pool for a
  // session that goes on. Only the memory can tell of its end.
  void Adopt(SessionId session, WriterId writer);

  // Asks the memory about writers whose end no pidfd will report. To be called
  // periodically.
  void CheckUnwatched();

  // Forgets the writers of a session that has ended and left no pages.
  void Forget(SessionId session);

  // Returns the process of a writer, or none if it has ended or is not visible.
  std::optional<pid_t> PidOf(WriterId writer) const;

 private:
  struct Attachment {
    SessionId session;
    pid_t pid = 0;  // 0: the process has ended, or is not visible
    bool has_pool = false;
    bool has_block_memory = false;
    bool is_known_to_memory = true;
  };
  struct Exported {
    std::vector<SharedDescriptor> memory;
    bool is_known_to_memory = true;  // the memory can tell of the writer
  };

  Attachments(PrefixCache* cache, const KvPool* pool,
              const HostMemory* block_memory, WriterId last_writer)
      : cache_(cache),
        pool_(pool),
        block_memory_(block_memory),
        last_writer_(last_writer.value()) {}

  absl::StatusOr<Exported> ExportTo(WriterId writer,
                                    AttachGrant::What what) const;
  absl::StatusOr<Exported> ExportPoolTo(WriterId writer) const;
  absl::StatusOr<Exported> ExportBlockMemoryTo(WriterId writer) const;
  // Adds memory that a known writer has received to what it has already.
  void Extend(WriterId writer, const Attachment& by);
  // Returns the writer that this process already is for the session, if the
  // process lives; else none.
  std::optional<WriterId> Find(SessionId session, pid_t pid) const;
  // Begins to watch the process of a writer. Returns false if the session is
  // over.
  bool Watch(WriterId writer, const Attachment& attachment);
  // Returns whether any process holds the memory that was exported to the
  // writer, or none if the memory cannot tell.
  std::optional<bool> IsHeldBy(WriterId writer) const;
  void OnProcessEnded(WriterId writer);
  // Ends the writer, unless a process still holds its memory.
  void EndUnlessHeld(WriterId writer);
  void End(WriterId writer);
  std::vector<WriterId> WritersWithoutProcess() const;

  PrefixCache* const cache_;
  const KvPool* const pool_;
  const HostMemory* const block_memory_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<WriterId, Attachment> attachments_
      ABSL_GUARDED_BY(mutex_);
  uint64_t last_writer_ ABSL_GUARDED_BY(mutex_);
  // It is the last member, because its thread calls OnProcessEnded.
  std::unique_ptr<ProcessWatcher> watcher_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_ATTACHMENTS_H_
