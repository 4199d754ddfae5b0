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
// encoded once for all watchers.
grpc::Slice EncodeEpoch(uint64_t epoch);
// Encodes a WatchResponse of this one event, with the number `sequence`.
// Changes only the number of `event`.
grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence);

// Encoded events one after the other, in slices of about kSliceBytes. With a
// slice for each event, the last watcher would take tens of milliseconds to
// free them.
class EncodedEvents {
 public:
  static constexpr size_t kSliceBytes = size_t{256} << 10;

  // Adds an event, encoded as EncodeEvent does.
  void Add(v1::Event& event, uint64_t sequence);
  // Returns all slices, and leaves this empty.
  std::vector<grpc::Slice> Take();

 private:
  std::string last_;  // encoded events that are in no slice yet
  std::vector<grpc::Slice> slices_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_
