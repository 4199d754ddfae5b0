#ifndef PANDO_SERVICE_LANE_LANE_CONNECTION_H_
#define PANDO_SERVICE_LANE_LANE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/ids.h"
#include "os/sockets/unix_peer.h"
#include "service/lane/served_lane.h"
#include "service/security/access_control.h"

namespace pando {

class LaneConnection;

// A place for one call on a lane: it holds the call's messages, and knows how
// far the call has come.
class LaneCall {
 public:
  virtual ~LaneCall() = default;

  // Both are called without the turn, before Begin. CheckParts checks all bytes
  // of the request for too many parts (INVALID_FIELD). ParseMore parses the
  // next bytes, which must be whole fields.
  virtual absl::Status CheckParts(std::string_view request) = 0;
  virtual absl::Status ParseMore(std::string_view fields) = 0;

  // Carries the call out, or answers it with `parsed` if that is an error.
  // Returns true if the call waits; the lane must then own this object.
  virtual bool Begin(LaneConnection& lane, uint32_t slot,
                     const absl::Status& parsed) = 0;
  // Runs the handler of a waiting call again. May delete this.
  virtual void TakeStep() = 0;
  // Makes a waiting call answer, because the lane is being closed. Deletes
  // this.
  virtual void End() = 0;
};

// The worker at the other end of a lane: the caller of all calls on it.
struct LanePeer {
  SessionId session;
  UnixPeer process;
  std::string authorization;  // that the worker showed; empty if none
};

// An open lane: its memory, its peer, and its waiting calls. Owned by
// LaneServer, whose thread uses lane(), peer() (constant) and served_until
// without the turn. lane() also gets answers, in the turn. All other members
// are used in the turn.
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

  // Takes over a call that waits.
  void AddWaiting(std::unique_ptr<LaneCall> call) {
    LaneCall* const key = call.get();
    waiting_.emplace(key, std::move(call));
  }
  // Deletes a call that was answered.
  void RemoveWaiting(LaneCall* call) {
    if (stepping_ == call) stepping_ = nullptr;
    waiting_.erase(call);
  }

  // Begins a call whose handler takes its steps on the thread of the lanes.
  // Returns whether there is a step for TakeStep to take.
  bool Begin(std::unique_ptr<LaneCall> call, uint32_t slot,
             const absl::Status& parsed) {
    takes_steps_ = true;
    if (call->Begin(*this, slot, parsed)) AddWaiting(std::move(call));
    takes_steps_ = false;
    return stepping_ != nullptr;
  }
  // Takes the next step of the call that has one. Returns whether there is
  // another step.
  bool TakeStep() {
    takes_steps_ = true;
    if (LaneCall* call = std::exchange(stepping_, nullptr)) call->TakeStep();
    takes_steps_ = false;
    return stepping_ != nullptr;
  }
  // A call reports here that it has another step to take. Returns whether
  // TakeStep will take it; if not, the call must be resumed in another way.
  bool KeepStep(LaneCall* call) {
    if (takes_steps_) stepping_ = call;
    return takes_steps_;
  }

  // When the last long call of the lane was due, in bytes. It belongs to
  // LongCalls.
  uint64_t served_until = 0;

  // Answers the waiting calls, and tells the worker that there will be no more
  // answers.
  void Close() {
    while (!waiting_.empty()) waiting_.begin()->first->End();
    lane_->Close();
  }

 private:
  const std::unique_ptr<ServedLane> lane_;
  const LanePeer peer_;
  absl::flat_hash_map<LaneCall*, std::unique_ptr<LaneCall>> waiting_;
  // The waiting call whose next step TakeStep takes; null if there is none.
  LaneCall* stepping_ = nullptr;
  bool takes_steps_ = false;  // set during Begin and TakeStep
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_CONNECTION_H_
