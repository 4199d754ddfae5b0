#ifndef PANDO_SERVICE_LANE_LANE_CONNECTION_H_
#define PANDO_SERVICE_LANE_LANE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "service/lane/served_lane.h"
#include "service/security/access_control.h"
#include "service/sockets/unix_peer.h"

namespace pando {

// A call that came by a lane and waits.
class WaitingLaneCall {
 public:
  virtual ~WaitingLaneCall() = default;
  // The lane is being closed: the call is answered now, and gone.
  virtual void End() = 0;
};

// Who is at the other end of a lane: known since it was opened, and the same
// for all calls on it.
struct LanePeer {
  SessionId session;
  UnixPeer process;
  std::string authorization;  // that it showed; empty: none
};

// A lane that is open: its memory, its peer, and its calls that wait. Owned by
// LaneServer, whose thread takes from the lane; all else is used in the turn.
class LaneConnection {
 public:
  LaneConnection(std::unique_ptr<ServedLane> lane, LanePeer peer)
      : lane_(std::move(lane)), peer_(std::move(peer)) {}

  ServedLane& lane() { return *lane_; }
  const LanePeer& peer() const { return peer_; }
  Caller caller() const {
    Caller caller = {.connection = NameOf(peer_.process),
                     .peer = peer_.process};
    if (!peer_.authorization.empty()) {
      caller.authorization = peer_.authorization;
    }
    return caller;
  }

  void AddWaiting(std::unique_ptr<WaitingLaneCall> call) {
    WaitingLaneCall* const key = call.get();
    waiting_.emplace(key, std::move(call));
  }
  // It was answered; deletes it.
  void RemoveWaiting(WaitingLaneCall* call) { waiting_.erase(call); }

  // Answers all calls, and tells the worker that there will be no more answers.
  void Close() {
    while (!waiting_.empty()) waiting_.begin()->first->End();
    lane_->Close();
  }

 private:
  const std::unique_ptr<ServedLane> lane_;
  const LanePeer peer_;
  absl::flat_hash_map<WaitingLaneCall*, std::unique_ptr<WaitingLaneCall>>
      waiting_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_CONNECTION_H_
