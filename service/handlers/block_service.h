#ifndef PANDO_SERVICE_HANDLERS_BLOCK_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_BLOCK_SERVICE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "core/block_cache.h"
#include "core/block_calls/block_ends.h"
#include "pando/v1/blocks.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/handlers/stepped_calls.h"
#include "service/memory/memory_socket.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "tiers/blocks/block_tier.h"

namespace pando {

// The handlers of pando.v1.Blocks. Each handler checks and converts its
// request, calls the cache, and converts the result. Owned by Server; used in
// the turn; holds no state.
class BlockService {
 public:
  // All pointers outlive the service. `memory_bytes` is the size of the block
  // memory, or 0 if there is none.
  BlockService(PrefixCache* cache, BlockCache* blocks, SteppedCalls* stepped,
               MemorySocket* memory, uint64_t memory_bytes, uint64_t epoch)
      : cache_(cache),
        blocks_(blocks),
        stepped_(stepped),
        memory_(memory),
        memory_bytes_(memory_bytes),
        epoch_(epoch) {}

  // Adds the methods of the data path that this service carries out.
  void AddMethodsTo(DataPath& data_path);
  // Serves all its methods over gRPC. REQUIRES: AddMethodsTo(data_path) was
  // called.
  void Register(RpcServer& server, RpcMetrics& metrics,
                const DataPath& data_path);

  absl::Status AttachMemory(const v1::AttachMemoryRequest& request,
                            v1::AttachMemoryResponse& response,
                            const WaitingCall& call);
  // Sets what keeps copies of blocks; it outlives the service. Null, the
  // default, means that there is no such tier. To be called before the first
  // call.
  void set_tier(BlockTier* tier) { tier_ = tier; }

  absl::Status OpenKinds(const v1::OpenKindsRequest& request,
                         v1::OpenKindsResponse& response);
  absl::Status FindKinds(const v1::FindKindsRequest& request,
                         v1::FindKindsResponse& response);
  // The handlers below take steps, and return none between two steps.
  std::optional<absl::Status> ResetKinds(const v1::ResetKindsRequest& request,
                                         v1::ResetKindsResponse& response,
                                         WaitingCall& call);
  std::optional<absl::Status> LookupBlocks(
      const v1::LookupBlocksRequest& request,
      v1::LookupBlocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> AcquireBlocks(
      const v1::AcquireBlocksRequest& request,
      v1::AcquireBlocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> ReserveBlocks(
      const v1::ReserveBlocksRequest& request,
      v1::ReserveBlocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> PublishBlocks(
      const v1::PublishBlocksRequest& request,
      v1::PublishBlocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> DiscardBlocks(
      const v1::DiscardBlocksRequest& request,
      v1::DiscardBlocksResponse& response, WaitingCall& call);
  std::optional<absl::Status> ReleaseBlocks(
      const v1::ReleaseBlocksRequest& request,
      v1::ReleaseBlocksResponse& response, WaitingCall& call);

 private:
  // Publishes or discards reserved blocks, as `outcome` says.
  template <typename Request, typename Response>
  std::optional<absl::Status> Complete(const Request& request,
                                       Response& response, WaitingCall& call,
                                       BlockCompletion::Outcome outcome);

  PrefixCache* const cache_;
  BlockCache* const blocks_;
  SteppedCalls* const stepped_;
  MemorySocket* const memory_;
  const uint64_t memory_bytes_;
  const uint64_t epoch_;
  BlockTier* tier_ = nullptr;
  AsyncService<v1::Blocks> grpc_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_BLOCK_SERVICE_H_
