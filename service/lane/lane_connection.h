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

// A place for a call on a lane: its messages, and how far it has come.
class LaneCall {
 public:
  virtual ~LaneCall() = default;

  // Called without the turn, before Begin. CheckParts looks at all bytes of the
  // request; ParseMore parses the next of them, which are whole fields.
  virtual absl::Status CheckParts(std::string_view request) = 0;
  virtual absl::Status ParseMore(std::string_view fields) = 0;

  // Carries the call out, or answers it with the error of its parsing. Returns
  // true when it waits; the lane must then own it.
  virtual bool Begin(LaneConnection& lane, uint32_t slot,
                     const absl::Status& parsed) = 0;
  // Runs the handler of a waiting call again. May delete this.
  virtual void TakeStep() = 0;
  // Answers a waiting call and deletes it, because the lane is being closed.
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

  void AddWaiting(std::unique_ptr<LaneCall> call) {
    LaneCall* const key = call.get();
    waiting_.emplace(key, std::move(call));
  }
  // Deletes a call that was answered.
  void RemoveWaiting(LaneCall* call) {
    if (stepping_ == call) stepping_ = nullptr;
    waiting_.erase(call);
  }

  // Begins a call whose handler takes its steps on the lanes' thread. Returns
  // whether there is one to take.
  bool Begin(std::unique_ptr<LaneCall> call, uint32_t slot,
             const absl::Status& parsed) {
    takes_steps_ = true;
    if (call->Begin(*this, slot, parsed)) AddWaiting(std::move(call));
    takes_steps_ = false;
    return stepping_ != nullptr;
  }
  // Takes the next step of that call. Returns whether there is another one.
  bool TakeStep() {
    takes_steps_ = true;
    if (LaneCall* call = std::exchange(stepping_, nullptr)) call->TakeStep();
    takes_steps_ = false;
    return stepping_ != nullptr;
  }
  // The call has a step to take. Returns whether TakeStep will take it.
  bool KeepStep(LaneCall* call) {
    if (takes_steps_) stepping_ = call;
    return takes_steps_;
  }

  // For LongCalls.
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
  // Of those, the one whose next step TakeStep takes.
  LaneCall* stepping_ = nullptr;
  bool takes_steps_ = false;  // in Begin or TakeStep
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_CONNECTION_H_
