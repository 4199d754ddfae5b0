#include "service/watches/event_history.h"

#include <utility>

namespace pando {

uint64_t EventHistory::next_sequence() const {
  absl::MutexLock hold(&mutex_);
  return first_sequence_ + events_.size();
}

void EventHistory::Append(grpc::Slice event) {
  absl::MutexLock hold(&mutex_);
  bytes_ += event.size();
  events_.push_back(std::move(event));
  while (events_.size() > limits_.events || bytes_ > limits_.bytes) {
    bytes_ -= events_.front().size();
    events_.pop_front();
    ++first_sequence_;
  }
}

std::shared_ptr<EventSnapshot> EventHistory::WantedSnapshot() {
  absl::MutexLock hold(&mutex_);
  std::shared_ptr<EventSnapshot> snapshot = snapshot_.lock();
  return snapshot == nullptr || snapshot->is_made ? nullptr : snapshot;
}

void EventHistory::Finish(EventSnapshot& snapshot,
                          std::vector<grpc::Slice> slices) {
  absl::MutexLock hold(&mutex_);
  snapshot.sequence = first_sequence_ + events_.size() - 1;
  snapshot.slices = std::move(slices);
  snapshot.is_made = true;
}

bool EventHistory::Read(uint64_t after, size_t max_bytes,
                        std::vector<grpc::Slice>& events) const {
  absl::MutexLock hold(&mutex_);
  if (!HasAllAfter(after)) return false;
  size_t bytes = 0;
  for (size_t i = after + 1 - first_sequence_;
       i < events_.size() && bytes < max_bytes; ++i) {
    bytes += events_[i].size();
    events.push_back(events_[i]);
  }
  return true;
}

void EventHistory::NoteLost(uint64_t events) {
  absl::MutexLock hold(&mutex_);
  lost_events_ += events;
}

uint64_t EventHistory::lost_events() const {
  absl::MutexLock hold(&mutex_);
  return lost_events_;
}

std::shared_ptr<const EventSnapshot> EventHistory::RequestSnapshot() {
  absl::MutexLock hold(&mutex_);
  std::shared_ptr<EventSnapshot> snapshot = snapshot_.lock();
  if (snapshot == nullptr ||
      StateLocked(*snapshot) == SnapshotState::kOutdated) {
    snapshot = std::make_shared<EventSnapshot>();
    snapshot_ = snapshot;
  }
  return snapshot;
}

EventHistory::SnapshotState EventHistory::StateOf(
    const EventSnapshot& snapshot) const {
  absl::MutexLock hold(&mutex_);
  return StateLocked(snapshot);
}

EventHistory::SnapshotState EventHistory::StateLocked(
    const EventSnapshot& snapshot) const {
  if (!snapshot.is_made) return SnapshotState::kWanted;
  return HasAllAfter(snapshot.sequence) ? SnapshotState::kMade
                                        : SnapshotState::kOutdated;
}

bool EventHistory::HasAllAfter(uint64_t sequence) const {
  return sequence + 1 >= first_sequence_ &&
         sequence < first_sequence_ + events_.size();
}

}  // namespace pando
