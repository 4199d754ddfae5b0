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
#include "base/unique_fd.h"
#include "core/prefix_cache.h"
#include "gpu/kv_pool.h"
#include "service/memory/process_watcher.h"

namespace pando {

// Who has mapped the pool, for which session, and when they are gone: tells the
// cache, which gives the pages of a lost session to nobody before that. Owned
// by Server; any thread may call it.
//
// A writer is a process that attached, with all that it passed the memory on
// to, by fork or otherwise. The end of the process is told by its pidfd.
// Whether somebody else still holds the memory is asked of the memory itself,
// where that can tell; it also tells of processes that cannot be seen from
// here, and of mappings that a living process has given up.
class Attachments {
 public:
  // Both outlive it.
  static absl::StatusOr<std::unique_ptr<Attachments>> Start(PrefixCache* cache,
                                                            const KvPool* pool);

  // Takes a process down as a writer, and returns a descriptor of each shard
  // for it. FAILED_PRECONDITION: its session is over. pid is 0 when the process
  // is not visible in this PID namespace.
  absl::StatusOr<std::vector<UniqueFd>> Attach(SessionId session, pid_t pid);

  // Asks the memory about writers whose end no process will tell. To be called
  // every now and then.
  void Look();

  // The session has ended and left no pages.
  void Forget(SessionId session);

  // The process of a writer, while it lives and can be seen.
  std::optional<pid_t> PidOf(WriterId writer) const;

 private:
  struct Attachment {
    SessionId session;
    pid_t pid = 0;  // 0: it has ended, or cannot be seen
    bool is_known_to_memory = true;
  };
  struct Exported {
    std::vector<UniqueFd> shards;
    bool is_known_to_memory = true;  // the writer they are for
  };

  Attachments(PrefixCache* cache, const KvPool* pool)
      : cache_(cache), pool_(pool) {}

  absl::StatusOr<Exported> ExportTo(WriterId writer) const;
  // Of the same living process for the session.
  std::optional<WriterId> Find(SessionId session, pid_t pid) const;
  // False: the session is over.
  bool Watch(WriterId writer, const Attachment& attachment);
  // Whether somebody holds the memory that was exported to the writer; none:
  // that is not known.
  std::optional<bool> IsHeldBy(WriterId writer) const;
  void OnProcessEnded(WriterId writer);
  // The writer is gone, unless the memory is still held.
  void EndUnlessHeld(WriterId writer);
  void End(WriterId writer);
  std::vector<WriterId> WithoutProcess() const;

  PrefixCache* const cache_;
  const KvPool* const pool_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<WriterId, Attachment> attachments_
      ABSL_GUARDED_BY(mutex_);
  uint64_t last_writer_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last member: its thread calls OnProcessEnded.
  std::unique_ptr<ProcessWatcher> watcher_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_ATTACHMENTS_H_
