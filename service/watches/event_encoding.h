#ifndef PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_
#define PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_

#include <grpcpp/support/slice.h>

#include <cstdint>

#include "pando/v1/events.pb.h"

namespace pando {

// Encodes parts of a WatchResponse. In protobuf's encoding, the bytes of parts
// one after the other are the bytes of the whole message. So an event is
// encoded once, for all watchers.
grpc::Slice EncodeEpoch(uint64_t epoch);
// Changes only the number of `event`.
grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence);

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_ENCODING_H_
