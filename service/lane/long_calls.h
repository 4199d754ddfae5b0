#ifndef PANDO_SERVICE_LANE_LONG_CALLS_H_
#define PANDO_SERVICE_LANE_LONG_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "service/lane/lane_connection.h"
#include "service/lane/long_call.h"

namespace pando {

// The long calls of all lanes, at most one for each lane. They are served by
// bytes (fair queueing). A call is due when it would end if all lanes with a
// long call were served byte by byte; the next part is always of the call that
// is due first. So a lane waits for as many bytes of each other lane as it asks
// for itself, and of several calls of the same length only one is under way.
//
// Owned by LaneServer; used by its thread.
class LongCalls {
 public:
  bool empty() const { return calls_.empty(); }
  bool Has(const LaneConnection& lane) const { return calls_.contains(&lane); }

  // REQUIRES: !Has(call.lane()).
  void Add(LongCall call) {
    LaneConnection* const lane = &call.lane();
    const uint64_t due = std::max(now_, lane->served_until) + call.bytes();
    lane->served_until = due;
    const Place place(due, ++last_);
    order_.emplace(place, lane);
    calls_.emplace(lane, Queued{std::move(call), place});
  }

  // Does one part of one call. REQUIRES: !empty().
  void Step() {
    LaneConnection* const lane = order_.begin()->second;
    LongCall& call = calls_.at(lane).call;
    if (call.Step()) return;
    now_ += call.bytes() / calls_.size();
    Remove(lane);
  }

  // Drops the call of a lane, if it has one.
  void Remove(LaneConnection* lane) {
    const auto found = calls_.find(lane);
    if (found == calls_.end()) return;
    order_.erase(found->second.place);
    calls_.erase(found);
  }

 private:
  // When a call is due, and its number. Of two calls that are due at the same
  // time, the one that came first goes first.
  using Place = std::pair<uint64_t, uint64_t>;
  struct Queued {
    LongCall call;
    Place place;
  };

  absl::flat_hash_map<const LaneConnection*, Queued> calls_;
  std::map<Place, LaneConnection*> order_;
  uint64_t last_ = 0;
  uint64_t now_ = 0;  // bytes that a lane was served that always had a call
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LONG_CALLS_H_
