#ifndef PANDO_SERVICE_SERVER_H_
#define PANDO_SERVICE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/block_cache.h"
#include "core/nodes/page_ledger.h"
#include "core/prefix_cache.h"
#include "events/routers/kv_events.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"
#include "os/keeping/kept_descriptors.h"
#include "os/sockets/peer_filter.h"
#include "os/sockets/unix_listener.h"
#include "service/calls/call_policy.h"
#include "service/console/console.h"
#include "service/handlers/admin_service.h"
#include "service/handlers/block_service.h"
#include "service/handlers/data_path.h"
#include "service/handlers/data_path_service.h"
#include "service/handlers/health_service.h"
#include "service/handlers/pending_matches.h"
#include "service/handlers/pool_service.h"
#include "service/handlers/prefix_cache_service.h"
#include "service/handlers/session_service.h"
#include "service/handlers/stepped_calls.h"
#include "service/http/http_server.h"
#include "service/lane/gauge_board.h"
#include "service/lane/lane_server.h"
#include "service/memory/attachments.h"
#include "service/memory/earlier_writers.h"
#include "service/memory/kept_ledger.h"
#include "service/memory/memory_socket.h"
#include "service/memory/open_pool.h"
#include "service/memory/page_verifier.h"
#include "service/metrics/regret_meter.h"
#include "service/options/option_changes.h"
#include "service/options/options.h"
#include "service/rpc/rpc_server.h"
#include "service/security/access_control.h"
#include "service/self_check.h"
#include "service/watches/events_service.h"
#include "tiers/blocks/block_tier.h"
#include "tiers/tiers.h"

namespace pando {

// The whole of a pandod process: owns the pool, the cache and the servers, and
// connects them. Start, drain and destroy it from one thread.
class Server {
 public:
  // Returns a running server, ready for workers, or the reason why it cannot
  // start. `on_exit` and `on_restart` are called on the polling thread when an
  // operator asks the process to drain and end, or to end at once so that its
  // keeper starts the next one; `on_restart` returns false if the process is
  // ending already. `on_layout` is called on the polling thread
  // when an open pool may take a layout: the process must then begin anew with
  // these flags, unless `on_layout` returns why it cannot. `kept` has the
  // descriptors that the server takes over, and gets those that it makes. It
  // outlives the server, and belongs to this process until the process ends.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      Options options, KeptDescriptors* kept, std::function<void()> on_exit,
      std::function<bool()> on_restart, OpenPool::OnLayout on_layout);
  // Stops at once; running calls are cut off.
  ~Server();

  // Begins to drain: no new session is opened, and calls that would begin a new
  // request are refused (see PrefixCache::BeginDrain); sessions are told, and
  // probes answer "not ready". Running requests may finish. Idempotent.
  void BeginDrain();
  // Applies the options of `given` that may change while the server runs, and
  // logs which others need a restart. A new eviction policy is set first, in
  // steps; the other options change together, between two calls. Invalid
  // options change nothing. REQUIRES: BeginDrain was not called.
  void Reload(const Options& given);
  // Returns the options in effect.
  const Options& options() const { return options_; }
  // Returns a count that goes up as long as the polling thread works.
  // Thread-safe.
  uint64_t turns() const { return turns_; }
  // Waits until no handler runs, and lets none run any more, so that the death
  // of the process meets no call half done but those of several steps.
  void HoldCalls() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    policy_.turn().mutex().Lock();
  }
  // Returns whether no worker's session holds a lock or a reserved page.
  bool IsIdle() {
    return tiers_ == nullptr ? cache_.IsIdle() : tiers_->IsIdle();
  }

 private:
  // The memory that the cache takes over from an earlier pandod, if there is
  // any.
  struct CacheMemory {
    BlockOptions blocks;
    PageLedger::Pool pool = {};
    std::span<std::byte> page_ledger = {};
    bool keeps_sessions = false;  // those in page_ledger
  };

  Server(const Options& options, KeptDescriptors* kept,
         std::function<void()> on_exit, std::function<bool()> on_restart,
         std::unique_ptr<KvPool> pool, std::unique_ptr<HostMemory> block_memory,
         std::unique_ptr<KeptLedgers> ledgers, const CacheMemory& memory);

  // Tells sessions, watchers of health and waiting matches that nothing new is
  // admitted.
  void AnnounceDrain();
  void ChangePolicy(EvictionPolicyKind policy);
  // Runs on the polling thread.
  void Apply(const OptionChanges& changes);
  absl::Status MakeVerifier();
  // Puts in quarantine what workers of the earlier pandod may still use.
  void FindEarlierWriters(EarlierWriters::Ledgers of_before);
  // Lets workers resume the sessions that they had with the earlier pandod.
  void TakeOverSessions();
  UnixSocket SocketAt(const std::string& path, std::string kept_name) const;
  absl::Status StartMemorySocket();
  absl::Status StartKvEvents();
  // Returns functions that verify the pages which tiers load; empty ones if
  // pages are not verified.
  Mover::Verifier LoadVerifier();
  absl::Status StartTiers();
  absl::Status StartBlockTier();
  // Returns the sinks that get all events, besides the watchers over gRPC.
  std::vector<EventSink*> EventSinks() const;
  void MakeServices();
  absl::Status MakeAccessControl();
  absl::Status StartLanes();
  absl::StatusOr<std::vector<SharedDescriptor>> OpenLane(
      const AttachGrant& grant, const UnixPeer& peer);
  // Updates the gauge page, which workers read without a call. Used in the
  // turn.
  void ShowGauges();
  absl::Status StartRpc();
  absl::Status StartHttp();
  void MakeConsole();
  // Returns the bytes of one page in all shards together.
  uint64_t PageBytesOfAllShards() const;
  // Does the periodic work. It begins to end sessions whose grace is over and
  // to free pages whose quarantine is over, checks for writers that have gone,
  // and prunes what the log and the call rates remember.
  void RunHousekeeping();
  // Takes a step of the work that is left from ended sessions, and asks for the
  // next step.
  void TakeStepOfEnds();
  // Closes the lane of an ended session, and drops its writers and tokens.
  void Forget(SessionId ended);
  // Returns the time between two checks of the watermark; zero if there are
  // none.
  absl::Duration WatermarkPeriod() const;
  bool IsLive(SessionId session) { return cache_.CheckSession(session).ok(); }

  // After the start the options change only on the polling thread, while the
  // thread that started the server waits for it (Reload).
  Options options_;
  KeptDescriptors* const kept_;
  const std::function<void()> on_exit_;
  const std::function<bool()> on_restart_;
  const uint64_t run_;  // names this process; cache_ names the epoch
  const std::unique_ptr<KvPool> pool_;
  const std::unique_ptr<HostMemory> block_memory_;  // null: there is none
  const std::unique_ptr<KeptLedgers> ledgers_;
  std::atomic<bool> is_draining_ = false;
  std::atomic<uint64_t> turns_ = 0;
  RpcMetrics rpc_metrics_;
  PrefixCache cache_;
  BlockCache blocks_;
  SelfCheck self_check_;
  std::optional<gid_t> socket_group_;
  PeerFilter peer_filter_;
  std::unique_ptr<AccessControl> access_;  // null: no credentials
  std::unique_ptr<PageVerifier> verifier_;
  std::unique_ptr<OpenPool> open_pool_;  // null: the pool has a layout

  // These are in the order in which they start: each may use those before it.
  std::unique_ptr<EarlierWriters> earlier_writers_;
  std::unique_ptr<Attachments> attachments_;
  std::unique_ptr<MemorySocket> memory_;
  std::unique_ptr<KvEvents> kv_events_;  // null: off
  std::unique_ptr<GaugeBoard> gauges_;   // null: there are no lanes
  CallPolicy policy_;
  RpcServer rpc_;
  PendingMatches pending_matches_;
  SteppedCalls stepped_calls_;
  Wakeup* const drain_announcement_;
  Wakeup* const ends_step_;
  Wakeup* const watermark_step_;
  Wakeup* const check_step_;
  Timer* watermark_timer_ = nullptr;
  Timer* check_timer_ = nullptr;
  std::unique_ptr<Tiers> tiers_;           // null: there are none
  std::unique_ptr<BlockTier> block_tier_;  // null: there is none
  DataPath data_path_;
  std::unique_ptr<HealthService> health_service_;
  std::unique_ptr<PrefixCacheService> prefix_cache_service_;
  std::unique_ptr<PoolService> pool_service_;
  std::unique_ptr<BlockService> block_service_;
  std::unique_ptr<SessionService> session_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<EventsService> events_service_;
  std::unique_ptr<DataPathService> data_path_service_;
  std::unique_ptr<LaneServer> lanes_;    // null: there are none
  std::unique_ptr<RegretMeter> regret_;  // null: there is no HTTP
  std::unique_ptr<Console> console_;     // null: there is no HTTP, or it is off
  std::unique_ptr<HttpServer> http_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SERVER_H_
