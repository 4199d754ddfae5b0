#ifndef PANDO_SERVICE_LANE_LANE_SERVER_H_
#define PANDO_SERVICE_LANE_LANE_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/lane/lane_connection.h"
#include "service/lane/lane_figures.h"
#include "service/lane/lane_methods.h"
#include "service/lane/long_calls.h"
#include "service/lane/served_lane.h"

namespace pando {

// The file descriptors that a worker receives for its lane.
struct LaneDescriptors {
  UniqueFd memory;
  uint64_t memory_bytes = 0;
  UniqueFd doorbell;
};

// Serves all lanes on one thread. The thread sleeps until a worker rings,
// carries out the calls, and looks a little longer for the next call before it
// sleeps again. Lanes without traffic cost nothing.
//
// Owned by Server. Any thread may call Open and Close. Stop ends it.
class LaneServer {
 public:
  // The most lanes of one session whose memory exists: the open lane, and those
  // that it has replaced within the last seconds. So a session that opens one
  // lane after the other keeps no other session from its lane.
  static constexpr uint32_t kMaxOfSession = 4;

  struct Config {
    // The bytes of each lane's arena.
    uint32_t arena_bytes = 0;
    uint32_t max_lanes = 0;
    uint32_t slots = lane::kSlots;
    // The largest request, as over gRPC. A larger one is refused unread.
    uint32_t max_request_bytes = UINT32_MAX;
    // How long the thread spins for the next call before it sleeps. It spins
    // only if the last callers ran on other CPUs: on a caller's own CPU,
    // spinning would keep the caller from running.
    absl::Duration spin;
  };

  // `policy` outlives the server.
  static absl::StatusOr<std::unique_ptr<LaneServer>> Start(
      const Config& config, CallPolicy* policy, const DataPath& data_path,
      RpcMetrics& metrics);
  ~LaneServer() { Stop(); }
  LaneServer(const LaneServer&) = delete;
  LaneServer& operator=(const LaneServer&) = delete;

  // Opens a lane for the session of `peer`, in place of the one that the
  // session may have. Returns RESOURCE_EXHAUSTED if max_lanes are open, or if
  // as many were closed within seconds; SESSION_LIMIT if the session alone
  // opened kMaxOfSession within seconds; UNAVAILABLE after Stop.
  absl::StatusOr<LaneDescriptors> Open(LanePeer peer);
  // Closes the lane of a session, if it has one.
  void Close(SessionId session);
  // Returns the counts; a spin is counted when it ends. Thread-safe.
  LaneFigures figures() const;
  // Closes all lanes and ends the thread; no lane is opened after this.
  // Idempotent.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // Identifies a lane; lanes are numbered in the order in which they were
  // opened.
  using LaneId = uint64_t;

  struct OpenedLane {
    LaneId id;
    std::unique_ptr<LaneConnection> connection;
  };

  LaneServer(const Config& config, CallPolicy* policy,
             const DataPath& data_path, RpcMetrics& metrics, UniqueFd epoll,
             UniqueFd changes);

  // Wakes the thread, because it must open or close lanes, or stop.
  void WakeThread();
  absl::Status Listen(int fd, LaneId id);

  // The functions below run on the thread of the lanes.
  void Run();
  // Opens and closes the lanes that other threads have asked for. Returns false
  // when the thread must stop.
  bool OpenAndCloseLanes();
  // Serves one short call of each active lane, and one part of one long call,
  // so that no lane holds up another. Returns whether it has served anything.
  bool ServeActive();
  // Takes one call of one lane, and serves it or adds it to long_calls_.
  // Returns whether there was one. Drops the lane if its worker broke the
  // protocol.
  bool Serve(LaneId id, LaneConnection& connection);
  // Adds the call that was taken to long_calls_. Returns false if the call is
  // short, or must be refused.
  bool StartLongCall(LaneConnection& connection);
  // Returns whether the thread may spin for the next call instead of sleeping.
  bool MaySpin() const;
  // Spins until a call arrives on an active lane, for kSpins looks at most.
  void SpinOnActive() const;
  // Counts the spin that ends now, if there is one.
  void EndSpin(std::atomic<uint64_t>& spins);
  // Tells the workers of the active lanes to ring again. Returns false when a
  // call arrived meanwhile, so that the thread must not sleep yet.
  bool PrepareToSleep();
  // Waits for doorbells and for WakeThread, and makes the lanes that rang
  // active.
  void TakeRings(int timeout_ms);
  void Drop(LaneId id);
  // Frees the memory of lanes that were closed a while ago.
  void GiveMemoryBack();

  const Config config_;
  CallPolicy* const policy_;
  const UniqueFd epoll_;
  const UniqueFd changes_;  // the eventfd that WakeThread writes to

  mutable absl::Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  LaneId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<SessionId, LaneId> by_session_ ABSL_GUARDED_BY(mutex_);
  size_t lanes_with_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<SessionId, uint32_t> with_memory_by_session_
      ABSL_GUARDED_BY(mutex_);
  std::vector<OpenedLane> to_open_ ABSL_GUARDED_BY(mutex_);
  std::vector<LaneId> to_close_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_changes_ = false;

  // The members below belong to the thread.
  LaneMethods methods_;
  absl::flat_hash_map<LaneId, std::unique_ptr<LaneConnection>> lanes_;
  std::vector<LaneId> active_;  // lanes that were called since the thread slept
  LongCalls long_calls_;
  struct ClosedLane {
    Clock::time_point since;
    std::unique_ptr<LaneConnection> connection;
  };
  std::deque<ClosedLane> closed_;  // the oldest first
  ServedLane::Taken taken_;
  Clock::time_point last_call_;
  Clock::time_point last_rings_;        // when the thread last called TakeRings
  bool callers_are_elsewhere_ = false;  // the last callers ran on other CPUs
  bool is_spinning_ = false;
  // Only the thread writes these.
  std::atomic<uint64_t> spins_with_call_ = 0;
  std::atomic<uint64_t> spins_without_call_ = 0;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_SERVER_H_
