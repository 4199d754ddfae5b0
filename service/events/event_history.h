#ifndef PANDO_SERVICE_EVENTS_EVENT_HISTORY_H_
#define PANDO_SERVICE_EVENTS_EVENT_HISTORY_H_

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pando {

// All that is cached at one moment, as events. Made on request by the
// feed, read by any number of watchers, kept alive by them alone.
struct EventSnapshot {
  // Guarded by the history's mutex, and constant once the snapshot is made.
  bool is_made = false;
  uint64_t sequence = 0;  // of the last event that it contains
  std::vector<grpc::Slice> events;
};

// The last published events and the snapshot that watchers begin with, encoded:
// each event is a WatchResponse of its own, so that a message to a watcher is
// some of them one after the other. Owned by EventFeed; thread-safe.
//
// However many watchers there are, however slow, it holds no more than its
// limits and one snapshot: a watcher that is still reading a snapshot whose
// next events are gone has to begin again.
class EventHistory {
 public:
  struct Limits {
    size_t events;
    size_t bytes;
  };

  explicit EventHistory(Limits limits) : limits_(limits) {}

  // For the feed. The number that the next event gets, from 1 on.
  uint64_t next_sequence() const;
  void Append(grpc::Slice event);
  // The snapshot that watchers wait for; null: none.
  std::shared_ptr<EventSnapshot> WantedSnapshot();
  // Gives them `events`, which are what is cached after the last event.
  void Finish(EventSnapshot& snapshot, std::vector<grpc::Slice> events);

  // For watchers. Appends the events after number `after`, up to about
  // `max_bytes` of them; none when there are none yet. False when the history
  // does not have them any more, or never had event `after`.
  bool Read(uint64_t after, size_t max_bytes,
            std::vector<grpc::Slice>& events) const;
  // A watcher is told that so many events are lost to it.
  void NoteLost(uint64_t events);
  // All of them.
  uint64_t lost_events() const;
  // The snapshot to begin with: it may not be made yet.
  std::shared_ptr<const EventSnapshot> RequestSnapshot();

  enum class SnapshotState { kWanted, kMade, kOutdated };
  // Outdated: the history does not have what follows it any more.
  SnapshotState StateOf(const EventSnapshot& snapshot) const;

 private:
  bool HasAllAfter(uint64_t sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SnapshotState StateLocked(const EventSnapshot& snapshot) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  uint64_t first_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<grpc::Slice> events_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_events_ ABSL_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<EventSnapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_EVENTS_EVENT_HISTORY_H_
