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

// Serves all lanes on one thread: it sleeps until a worker rings, carries out
// what was called, and looks a little longer for the next call before it sleeps
// again. Lanes without traffic cost nothing.
//
// Owned by Server. Open and Close may be called by any thread. Stop ends it.
class LaneServer {
 public:
  // Lanes of one session whose memory is still there: the open one, and those
  // that it replaced lately. So a session that opens one after the other keeps
  // no other session from its lane.
  static constexpr uint32_t kMaxOfSession = 4;

  struct Config {
    uint32_t arena_bytes = 0;
    uint32_t max_lanes = 0;
    uint32_t slots = lane::kSlots;
    // As over gRPC: a larger one is refused before it is looked at.
    uint32_t max_request_bytes = UINT32_MAX;
    // How long the thread spins for the next call before it sleeps. It spins
    // only while the last callers ran on other CPUs: on its own CPU spinning
    // would keep the caller from running.
    absl::Duration spin;
  };

  // `policy` outlives the server.
  static absl::StatusOr<std::unique_ptr<LaneServer>> Start(
      const Config& config, CallPolicy* policy, const DataPath& data_path,
      RpcMetrics& metrics);
  ~LaneServer() { Stop(); }
  LaneServer(const LaneServer&) = delete;
  LaneServer& operator=(const LaneServer&) = delete;

  // Opens a lane, in place of the one that its session may have had.
  // RESOURCE_EXHAUSTED when there are max_lanes already, or when so many were
  // closed lately; SESSION_LIMIT when the session alone opened kMaxOfSession.
  absl::StatusOr<LaneDescriptors> Open(LanePeer peer);
  // Closes the lane of a session, if it has one.
  void Close(SessionId session);
  // A spin is counted when it ends.
  LaneFigures figures() const;
  // Closes all lanes, and opens none. Idempotent.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // Lanes in the order in which they were opened.
  using LaneId = uint64_t;

  struct OpenedLane {
    LaneId id;
    std::unique_ptr<LaneConnection> connection;
  };

  LaneServer(const Config& config, CallPolicy* policy,
             const DataPath& data_path, RpcMetrics& metrics, UniqueFd epoll,
             UniqueFd changes);

  // Wakes the thread because lanes are to be opened or closed, or it must stop.
  void WakeThread();
  absl::Status Listen(int fd, LaneId id);

  // All of these run on the thread.
  void Run();
  // Opens and closes the lanes that other threads have asked for. Returns false
  // when the thread must stop.
  bool OpenAndCloseLanes();
  // Serves one short call of each active lane, and one part of one long call,
  // so that no lane holds up another. Returns whether there were any.
  bool ServeActive();
  // Serves one call of one lane, or puts it with the long ones. Returns whether
  // there was one. Drops the lane if its worker broke the protocol.
  bool Serve(LaneId id, LaneConnection& connection);
  // Returns false if the call that was taken is short, or is to be refused.
  bool StartLongCall(LaneConnection& connection);
  // Whether the thread may spin for the next call instead of sleeping.
  bool MaySpin() const;
  // Spins until a call arrives on an active lane, but not for long.
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

  // The thread's own.
  LaneMethods methods_;
  absl::flat_hash_map<LaneId, std::unique_ptr<LaneConnection>> lanes_;
  std::vector<LaneId> active_;  // called since it slept
  LongCalls long_calls_;
  struct ClosedLane {
    Clock::time_point since;
    std::unique_ptr<LaneConnection> connection;
  };
  std::deque<ClosedLane> closed_;  // the oldest first
  ServedLane::Taken taken_;
  Clock::time_point last_call_;
  Clock::time_point last_rings_;        // when it took them
  bool callers_are_elsewhere_ = false;  // the last ones ran on other CPUs
  bool is_spinning_ = false;
  // Written by the thread alone.
  std::atomic<uint64_t> spins_with_call_ = 0;
  std::atomic<uint64_t> spins_without_call_ = 0;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_SERVER_H_
