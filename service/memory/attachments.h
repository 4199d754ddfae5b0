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

// Knows who has mapped the pool or the block memory for which session, and
// tells the cache when they are gone: only then does the cache give the pages
// and blocks of a lost session to others. Owned by Server; any thread may call
// it.
//
// A writer is a process that attached, together with all processes that it
// passed the memory on to, by fork or otherwise. A pidfd reports the end of the
// process. Host memory itself can tell whether anybody still holds it; it is
// asked about heirs of the process, about processes that are not visible from
// here, and about mappings that a living process has given up.
class Attachments {
 public:
  // All outlive it. `block_memory` may be null: there is none. Writers count up
  // from `last_writer`, the last one of the pandod before.
  static absl::StatusOr<std::unique_ptr<Attachments>> Start(
      PrefixCache* cache, const KvPool* pool, const HostMemory* block_memory,
      WriterId last_writer = WriterId(0));

  // Records a process as a writer, and returns a descriptor for it of each
  // shard of the pool, or of the block memory. FAILED_PRECONDITION: its session
  // is over. pid is 0 when the process is not visible in this PID namespace.
  // REQUIRES: the grant is for memory that there is.
  absl::StatusOr<std::vector<SharedDescriptor>> Attach(const AttachGrant& grant,
                                                       pid_t pid);

  // Asks the memory about writers whose end no pidfd will report. To be called
  // periodically.
  void CheckUnwatched();

  // The session has ended and left no pages.
  void Forget(SessionId session);

  // The process of a writer, while it lives and is visible.
  std::optional<pid_t> PidOf(WriterId writer) const;

 private:
  struct Attachment {
    SessionId session;
    pid_t pid = 0;  // 0: it has ended, or is not visible
    bool has_pool = false;
    bool has_block_memory = false;
    bool is_known_to_memory = true;
  };
  struct Exported {
    std::vector<SharedDescriptor> memory;
    bool is_known_to_memory = true;  // IsHeldBy can tell of the writer
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
  // Adds what a writer has got beside what it has already.
  void Extend(WriterId writer, const Attachment& by);
  // The writer that this living process already is for the session.
  std::optional<WriterId> Find(SessionId session, pid_t pid) const;
  // False: the session is over.
  bool Watch(WriterId writer, const Attachment& attachment);
  // Whether anybody holds the memory that was exported to the writer; none: the
  // memory cannot tell.
  std::optional<bool> IsHeldBy(WriterId writer) const;
  void OnProcessEnded(WriterId writer);
  // Ends the writer, unless its memory is still held.
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
  // The last member: its thread calls OnProcessEnded.
  std::unique_ptr<ProcessWatcher> watcher_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_ATTACHMENTS_H_
