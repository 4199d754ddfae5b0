#ifndef PANDO_SERVICE_LANE_LONG_CALL_H_
#define PANDO_SERVICE_LANE_LONG_CALL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "service/calls/call_policy.h"
#include "service/lane/lane_connection.h"
#include "service/lane/served_lane.h"

namespace pando {

// A call with a long request, carried out part by part, so that the thread can
// serve other calls in between. First the request is copied and parsed, then
// the call begins, and its handler takes its steps. Owned by LongCalls; used by
// the thread of the lanes.
class LongCall {
 public:
  // `policy` and `lane` outlive this. `place` must be empty, and the request of
  // `call` not copied yet.
  LongCall(CallPolicy* policy, LaneConnection* lane,
           std::unique_ptr<LaneCall> place, ServedLane::Taken call)
      : policy_(policy),
        lane_(lane),
        place_(std::move(place)),
        call_(std::move(call)) {}

  // The bytes of the request.
  size_t bytes() const { return call_.request_bytes; }
  LaneConnection& lane() const { return *lane_; }

  // Does the next part. Takes the turn, so the caller must not hold it. Returns
  // false if no part is left for it to do: the call is answered, or waits for
  // something else.
  bool Step();

 private:
  void Parse();
  bool Begin();
  bool TakeStep();

  CallPolicy* const policy_;
  LaneConnection* const lane_;
  std::unique_ptr<LaneCall> place_;  // null once the call has begun
  ServedLane::Taken call_;
  size_t parsed_bytes_ = 0;
  absl::Status parsed_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LONG_CALL_H_
