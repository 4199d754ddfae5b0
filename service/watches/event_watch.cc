#include "service/watches/event_watch.h"

#include "service/watches/event_encoding.h"

namespace pando {
namespace {

// A message with so many bytes is full; its last event may exceed them.
constexpr size_t kMessageBytes = size_t{256} << 10;

using SnapshotState = EventHistory::SnapshotState;

}  // namespace

EventWatch::EventWatch(const v1::WatchRequest& request, uint64_t epoch,
                       EventHistory* history)
    : history_(history), epoch_(EncodeEpoch(epoch)) {
  const uint64_t after = request.after_sequence();
  if (!request.has_after_sequence()) {
    BeginSnapshot();
  } else if (request.epoch() == epoch && after < history_->next_sequence()) {
    known_ = after;
  } else {  // nothing of what it knows is of this run
    known_ = 0;
    BeginSnapshot();
  }
}

EventWatch::Next EventWatch::Fill(grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> parts = {epoch_};
  if (snapshot_ == nullptr) {
    if (history_->Read(*known_, kMessageBytes, parts)) {
      *known_ += parts.size() - 1;
    } else {
      BeginSnapshot();
    }
  }
  if (snapshot_ != nullptr) AddFromSnapshot(parts);
  if (parts.size() == 1) return Next::kNothingYet;
  message = grpc::ByteBuffer(parts.data(), parts.size());
  return Next::kMessage;
}

void EventWatch::BeginSnapshot() {
  snapshot_ = history_->RequestSnapshot();
  sent_ = 0;
}

void EventWatch::AddFromSnapshot(std::vector<grpc::Slice>& parts) {
  if (history_->StateOf(*snapshot_) == SnapshotState::kOutdated) {
    if (sent_ > 0) known_ = snapshot_->sequence;
    BeginSnapshot();
  }
  if (history_->StateOf(*snapshot_) != SnapshotState::kMade) return;
  if (sent_ == 0 && known_.has_value()) {
    v1::Event event;
    event.mutable_lost()->set_first_sequence(*known_ + 1);
    event.mutable_lost()->set_last_sequence(snapshot_->sequence);
    parts.push_back(EncodeEvent(event, snapshot_->sequence));
    history_->NoteLost(snapshot_->sequence - *known_);
  }
  const std::vector<grpc::Slice>& slices = snapshot_->slices;
  for (size_t bytes = 0; sent_ < slices.size() && bytes < kMessageBytes;
       ++sent_) {
    bytes += slices[sent_].size();
    parts.push_back(slices[sent_]);
  }
  if (sent_ < slices.size()) return;
  known_ = snapshot_->sequence;
  snapshot_ = nullptr;
}

}  // namespace pando
