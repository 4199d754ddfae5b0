#ifndef PANDO_SERVICE_HANDLERS_ADMIN_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_ADMIN_SERVICE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/block_cache.h"
#include "core/operators/eviction_work.h"
#include "core/operators/explanation.h"
#include "core/prefix_cache.h"
#include "pando/v1/admin.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/handlers/stepped_calls.h"
#include "service/handlers/tiered_explanation.h"
#include "service/handlers/tree_dumps.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/server_stream.h"
#include "service/self_check.h"
#include "tiers/blocks/block_tier.h"
#include "tiers/prefix_loader.h"
#include "tiers/tiers.h"

namespace pando {

// The handlers of pando.v1.Admin. Owned by Server; used in the turn, except for
// ExplainMatchBlocking. Its only changing state is the console's address and
// the dumps that are being sent. Long work is done in steps (SteppedCalls):
// such a handler returns none while its call waits for the next step.
class AdminService {
 public:
  struct Config {
    uint64_t epoch = 0;
    uint32_t max_tokens = 0;
    // Returns the process of a writer, or none if it has ended or is not
    // visible from here.
    std::function<std::optional<pid_t>(WriterId)> pid_of = nullptr;
    // Begins to drain; if `exit` is set, the process also ends.
    std::function<void(bool exit)> drain;
    // Ends the process soon, so that its keeper starts the next one. Returns
    // false if it is ending already. Null if it has no keeper.
    std::function<bool()> restart;
  };

  // All pointers outlive the service.
  AdminService(PrefixCache* cache, SelfCheck* self_check, SteppedCalls* stepped,
               Config config)
      : cache_(cache),
        self_check_(self_check),
        stepped_(stepped),
        config_(std::move(config)),
        tree_dumps_(cache) {}

  // Sets what makes the tiers forget flushed pages; it outlives the service. To
  // be called before the first call.
  void set_loader(PrefixLoader* loader) { loader_ = loader; }

  // Sets the block memory, whose figures are part of GetStats. `tier` keeps
  // copies of blocks, or is null. Both outlive the service. To be called before
  // the first call.
  void set_blocks(BlockCache* blocks, const BlockTier* tier) {
    blocks_ = blocks;
    block_tier_ = tier;
  }

  // Sets the tiers, whose figures are part of GetStats. They outlive the
  // service. To be called before the first call.
  void set_tiers(const Tiers* tiers) { tiers_ = tiers; }

  // Sets the address of the console that GetStats tells; empty if there is
  // none. To be called in the turn.
  void set_console_url(std::string url) { console_url_ = std::move(url); }

  // Adds the methods of the data path that this service carries out.
  void AddMethodsTo(DataPath& data_path);
  // Serves all its methods over gRPC. REQUIRES: AddMethodsTo(data_path) was
  // called.
  void Register(RpcServer& server, RpcMetrics& metrics,
                const DataPath& data_path);

  std::optional<absl::Status> GetStats(const v1::GetStatsRequest& request,
                                       v1::GetStatsResponse& response,
                                       WaitingCall& call);
  std::optional<absl::Status> Flush(const v1::FlushRequest& request,
                                    v1::FlushResponse& response,
                                    WaitingCall& call);
  std::optional<absl::Status> SetEvictionPolicy(
      const v1::SetEvictionPolicyRequest& request,
      v1::SetEvictionPolicyResponse& response, WaitingCall& call);
  std::optional<absl::Status> ListNamespaces(
      const v1::ListNamespacesRequest& request,
      v1::ListNamespacesResponse& response, WaitingCall& call);
  std::optional<absl::Status> ListSessions(
      const v1::ListSessionsRequest& request,
      v1::ListSessionsResponse& response, WaitingCall& call);
  std::optional<absl::Status> ListLocks(const v1::ListLocksRequest& request,
                                        v1::ListLocksResponse& response,
                                        WaitingCall& call);
  std::optional<absl::Status> ReleaseLocks(
      const v1::ReleaseLocksRequest& request,
      v1::ReleaseLocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> ListQuarantine(
      const v1::ListQuarantineRequest& request,
      v1::ListQuarantineResponse& response, WaitingCall& call);
  std::optional<absl::Status> ListKinds(const v1::ListKindsRequest& request,
                                        v1::ListKindsResponse& response,
                                        WaitingCall& call);
  std::optional<absl::Status> ExplainBlock(
      const v1::ExplainBlockRequest& request,
      v1::ExplainBlockResponse& response, WaitingCall& call);
  std::optional<absl::Status> FreeQuarantine(
      const v1::FreeQuarantineRequest& request,
      v1::FreeQuarantineResponse& response, WaitingCall& call);
  std::optional<absl::Status> ExplainMatch(
      const v1::ExplainMatchRequest& request,
      v1::ExplainMatchResponse& response, WaitingCall& call);
  std::optional<absl::Status> CheckInvariants(
      const v1::CheckInvariantsRequest& request,
      v1::CheckInvariantsResponse& response, WaitingCall& call);
  absl::Status Drain(const v1::DrainRequest& request,
                     v1::DrainResponse& response);
  absl::Status Restart(const v1::RestartRequest& request,
                       v1::RestartResponse& response);

  // Does what ExplainMatch does, for a thread without the turn: takes all
  // steps, and returns when they are done.
  absl::Status ExplainMatchBlocking(const v1::ExplainMatchRequest& request,
                                    v1::ExplainMatchResponse& response);

 private:
  using DumpSource = StreamSource<v1::DumpTreeResponse>;

  // Returns NO_BLOCK_MEMORY if this pandod has no block memory, else OK.
  absl::Status CheckBlockMemory() const;
  // Fills in the whole response except for the figures of blocks.
  absl::Status AnswerStats(const WaitingCall& call,
                           v1::GetStatsResponse& response);
  void Answer(TieredExplanation& done,
              v1::ExplainMatchResponse& response) const;
  absl::StatusOr<std::unique_ptr<DumpSource>> DumpTree(
      const v1::DumpTreeRequest& request);
  void ForgetFlushed(const FlushWork& done);

  PrefixCache* const cache_;
  SelfCheck* const self_check_;
  SteppedCalls* const stepped_;
  BlockCache* blocks_ = nullptr;           // null: there is no block memory
  const BlockTier* block_tier_ = nullptr;  // null: there is none
  const Tiers* tiers_ = nullptr;           // null: there are none
  PrefixLoader* loader_ = nullptr;         // null: there are no tiers
  std::string console_url_;
  const Config config_;
  AsyncService<v1::Admin> grpc_;
  TreeDumps tree_dumps_;
  std::unique_ptr<StreamMethod<v1::DumpTreeRequest, v1::DumpTreeResponse>>
      dumps_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_ADMIN_SERVICE_H_
