#ifndef PANDO_SERVICE_LANE_LANE_SERVER_H_
#define PANDO_SERVICE_LANE_LANE_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
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
#include "service/lane/lane_methods.h"
#include "service/lane/served_lane.h"

namespace pando {

// What a worker gets of its lane.
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
  struct Config {
    uint32_t arena_bytes = 0;
    uint32_t max_lanes = 0;
    uint32_t slots = lane::kSlots;
    // How long it looks for the next call. Only while callers run on other
    // CPUs: on its own, looking keeps them from calling.
    absl::Duration spin;
  };

  // `policy` outlives the server.
  static absl::StatusOr<std::unique_ptr<LaneServer>> Start(
      const Config& config, CallPolicy* policy, const DataPath& data_path,
      RpcMetrics& metrics);
  ~LaneServer() { Stop(); }
  LaneServer(const LaneServer&) = delete;
  LaneServer& operator=(const LaneServer&) = delete;

  // A new lane, in place of the one that its session may have had.
  // RESOURCE_EXHAUSTED: there are as many as there may be.
  absl::StatusOr<LaneDescriptors> Open(LanePeer peer);
  // Closes the lane of a session, if it has one.
  void Close(SessionId session);
  // Lanes that are open.
  uint32_t count() const;
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
             UniqueFd orders);

  // Tells the thread that there are new lanes, or lanes to close.
  void Order();
  absl::Status Listen(int fd, LaneId id);

  // All of these run on the thread.
  void Run();
  // Does what others have ordered. False: that it stop.
  bool CarryOutOrders();
  // Serves what is there on the lanes that were called lately; true if there
  // was something.
  bool ServeActive();
  // True if there was something. Drops the lane if its worker broke the rules.
  bool Serve(LaneId id, LaneConnection& connection);
  // Whether it goes on looking.
  bool MaySpin() const;
  // Until an active lane was called, but not for long.
  void Look() const;
  // Lets the active lanes ring again. False: one of them was called meanwhile.
  bool MayRest();
  // Waits for rings, and for orders, and makes the lanes that rang active.
  void TakeRings(int timeout_ms);
  void Drop(LaneId id);

  const Config config_;
  CallPolicy* const policy_;
  const UniqueFd epoll_;
  const UniqueFd orders_;  // an eventfd, among what epoll_ waits for

  mutable absl::Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  LaneId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<SessionId, LaneId> by_session_ ABSL_GUARDED_BY(mutex_);
  std::vector<OpenedLane> to_open_ ABSL_GUARDED_BY(mutex_);
  std::vector<LaneId> to_close_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_orders_ = false;

  // The thread's own.
  LaneMethods methods_;
  absl::flat_hash_map<LaneId, std::unique_ptr<LaneConnection>> lanes_;
  std::vector<LaneId> active_;  // called since it slept
  ServedLane::Taken taken_;
  uint32_t passes_ = 0;  // in which there was something
  Clock::time_point last_call_;
  bool caller_is_elsewhere_ = false;  // of the last call: on another CPU
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_SERVER_H_
