#ifndef PANDO_SERVICE_LANE_LANE_CONNECTION_H_
#define PANDO_SERVICE_LANE_LANE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "os/sockets/unix_peer.h"
#include "service/lane/served_lane.h"
#include "service/security/access_control.h"

namespace pando {

// A waiting call that came over a lane.
class WaitingLaneCall {
 public:
  virtual ~WaitingLaneCall() = default;
  // Answers the call and deletes it, because the lane is being closed.
  virtual void End() = 0;
};

// The worker at the other end of a lane: the caller of all calls on it.
struct LanePeer {
  SessionId session;
  UnixPeer process;
  std::string authorization;  // the one it showed; empty: none
};

// An open lane: its memory, its peer, and its waiting calls. Owned by
// LaneServer, whose thread takes calls from the lane; everything else is used
// in the turn.
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
  // Deletes a call that was answered.
  void RemoveWaiting(WaitingLaneCall* call) { waiting_.erase(call); }

  // Answers the waiting calls, and tells the worker that there will be no more
  // answers.
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
