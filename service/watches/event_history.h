#ifndef PANDO_SERVICE_WATCHES_EVENT_HISTORY_H_
#define PANDO_SERVICE_WATCHES_EVENT_HISTORY_H_

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pando {

// Everything that is cached at one moment, as events. The feed makes it on
// request; any number of watchers read it. Only the watchers keep it alive.
struct EventSnapshot {
  // The history's mutex guards these until the snapshot is made; then they are
  // constant.
  bool is_made = false;
  uint64_t sequence = 0;  // the number of the last event that it contains
  std::vector<grpc::Slice> slices;  // encoded events, several in each slice
};

// The last published events, and the snapshot that watchers begin with. Each
// event is encoded as a WatchResponse of its own, so a message to a watcher is
// several of these one after the other. Owned by EventFeed; thread-safe.
//
// However many watchers there are and however slow they are, it holds no more
// than its limits and one snapshot. A watcher must begin again if the events
// after its snapshot are dropped while it still reads the snapshot.
class EventHistory {
 public:
  struct Limits {
    size_t events;
    size_t bytes;
  };

  explicit EventHistory(Limits limits) : limits_(limits) {}

  // For the feed: returns the number that the next event gets. Numbers begin
  // with 1.
  uint64_t next_sequence() const;
  // For the feed: adds the next event, and drops the oldest ones beyond the
  // limits.
  void Append(grpc::Slice event);
  // For the feed: returns the snapshot that watchers wait for, or null if none
  // waits.
  std::shared_ptr<EventSnapshot> WantedSnapshot();
  // For the feed: completes a wanted snapshot. `slices` say what is cached
  // after the last event.
  void Finish(EventSnapshot& snapshot, std::vector<grpc::Slice> slices);

  // For watchers: appends to `events` the events after number `after`, up to
  // about `max_bytes`; appends nothing if there are none yet. Returns false if
  // the history does not have them any more, or never had event `after`.
  bool Read(uint64_t after, size_t max_bytes,
            std::vector<grpc::Slice>& events) const;
  // For watchers: counts events that a watcher is told it has lost.
  void NoteLost(uint64_t events);
  // Returns how many events watchers were told they lost, summed over all
  // watchers.
  uint64_t lost_events() const;
  // Returns the snapshot for a watcher to begin with, which may not be made
  // yet.
  std::shared_ptr<const EventSnapshot> RequestSnapshot();

  enum class SnapshotState { kWanted, kMade, kOutdated };
  // Returns whether the snapshot is made. kOutdated means that the history does
  // not have all events after it any more, so it is of no use.
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

#endif  // PANDO_SERVICE_WATCHES_EVENT_HISTORY_H_
