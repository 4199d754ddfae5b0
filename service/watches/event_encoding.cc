#include "service/watches/event_encoding.h"

#include <utility>

namespace pando {
namespace {

grpc::Slice Encode(const v1::WatchResponse& part) {
  grpc::Slice slice(part.ByteSizeLong());
  part.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return slice;
}

// A WatchResponse of one event. The event is moved into it, and back by the
// destructor.
class PartOfEvent {
 public:
  PartOfEvent(v1::Event& event, uint64_t sequence) : event_(event) {
    event.set_sequence(sequence);
    part_.add_events()->Swap(&event);
  }
  ~PartOfEvent() { part_.mutable_events(0)->Swap(&event_); }
  PartOfEvent(const PartOfEvent&) = delete;
  PartOfEvent& operator=(const PartOfEvent&) = delete;

  const v1::WatchResponse& message() const { return part_; }

 private:
  v1::Event& event_;
  v1::WatchResponse part_;
};

}  // namespace

grpc::Slice EncodeEpoch(uint64_t epoch) {
  v1::WatchResponse part;
  part.set_epoch(epoch);
  return Encode(part);
}

grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence) {
  const PartOfEvent part(event, sequence);
  return Encode(part.message());
}

void EncodedEvents::Add(v1::Event& event, uint64_t sequence) {
  PartOfEvent(event, sequence).message().AppendToString(&last_);
  if (last_.size() < kSliceBytes) return;
  slices_.emplace_back(last_);
  last_.clear();
}

std::vector<grpc::Slice> EncodedEvents::Take() {
  if (!last_.empty()) slices_.emplace_back(last_);
  last_.clear();
  return std::exchange(slices_, {});
}

}  // namespace pando
