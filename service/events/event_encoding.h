#ifndef PANDO_SERVICE_EVENTS_EVENT_ENCODING_H_
#define PANDO_SERVICE_EVENTS_EVENT_ENCODING_H_

#include <grpcpp/support/slice.h>

#include <cstdint>

#include "pando/v1/events.pb.h"

namespace pando {

// Parts of a WatchResponse in its wire form. As protobuf defines it, the bytes
// of several parts, one after the other, are those of the whole: so an event is
// encoded once, for all watchers.
grpc::Slice EncodeEpoch(uint64_t epoch);
// Changes nothing of `event` but its number.
grpc::Slice EncodeEvent(v1::Event& event, uint64_t sequence);

}  // namespace pando

#endif  // PANDO_SERVICE_EVENTS_EVENT_ENCODING_H_
