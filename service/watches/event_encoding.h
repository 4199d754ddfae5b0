#ifndef PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_
#define PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pando/v1/events.pb.h"

namespace pando {

// Encodes parts of a WatchResponse. In protobuf's encoding, the bytes of parts
// one after the other are the bytes of the whole message. So an event is
// encoded once, for all watchers.
grpc::Slice EncodeEpoch(uint64_t epoch);
// Changes only the number of `event`.
grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence);

// Encoded events one after the other, in slices of about kSliceBytes: to free
// as many slices as events takes tens of milliseconds, and who watches last
// does so.
class EncodedEvents {
 public:
  static constexpr size_t kSliceBytes = size_t{256} << 10;

  // As EncodeEvent.
  void Add(v1::Event& event, uint64_t sequence);
  // All of them; none are left.
  std::vector<grpc::Slice> Take();

 private:
  std::string last_;  // what is in no slice yet
  std::vector<grpc::Slice> slices_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_
