#ifndef PANDO_SERVICE_LANE_LONG_CALLS_H_
#define PANDO_SERVICE_LANE_LONG_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "service/lane/lane_connection.h"
#include "service/lane/long_call.h"

namespace pando {

// The long calls of all lanes, at most one of each. They are served by bytes
// (fair queueing): a call is due when it would end if all lanes that have one
// were served byte by byte, and the next part is of the one that is due first.
// So a lane waits for as many bytes of each other lane as it asks for itself,
// and of calls of one length only one is under way. Owned by LaneServer; used
// by its thread.
class LongCalls {
 public:
  bool empty() const { return calls_.empty(); }
  bool Has(const LaneConnection& lane) const { return calls_.contains(&lane); }

  // REQUIRES: !Has(call.lane()).
  void Add(LongCall call) {
    LaneConnection* const lane = &call.lane();
    const uint64_t due = std::max(now_, lane->served_until) + call.bytes();
    lane->served_until = due;
    order_.emplace(due, lane);
    calls_.emplace(lane, std::move(call));
  }

  // Does one part of one call. REQUIRES: !empty().
  void Step() {
    LaneConnection* const lane = order_.begin()->second;
    LongCall& call = calls_.at(lane);
    if (call.Step()) return;
    now_ += call.bytes() / calls_.size();
    Remove(lane);
  }

  // Drops the call of a lane, if it has one.
  void Remove(LaneConnection* lane) {
    if (calls_.erase(lane) > 0) order_.erase({lane->served_until, lane});
  }

 private:
  absl::flat_hash_map<const LaneConnection*, LongCall> calls_;
  std::set<std::pair<uint64_t, LaneConnection*>> order_;  // by when it is due
  uint64_t now_ = 0;  // bytes that a lane was served that always had a call
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LONG_CALLS_H_
