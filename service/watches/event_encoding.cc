#include "service/watches/event_encoding.h"

namespace pando {
namespace {

grpc::Slice Encode(const v1::WatchResponse& part) {
  grpc::Slice slice(part.ByteSizeLong());
  part.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return slice;
}

}  // namespace

grpc::Slice EncodeEpoch(uint64_t epoch) {
  v1::WatchResponse part;
  part.set_epoch(epoch);
  return Encode(part);
}

grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence) {
  event.set_sequence(sequence);
  v1::WatchResponse part;
  v1::Event& place = *part.add_events();
  place.Swap(&event);
  grpc::Slice slice = Encode(part);
  place.Swap(&event);
  return slice;
}

}  // namespace pando
