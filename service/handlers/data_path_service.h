#ifndef PANDO_SERVICE_HANDLERS_DATA_PATH_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_DATA_PATH_SERVICE_H_

#include <optional>

#include "absl/status/status.h"
#include "core/prefix_cache.h"
#include "pando/v1/data_path.grpc.pb.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/batched_calls.h"
#include "service/handlers/data_path.h"
#include "service/handlers/stepped_calls.h"
#include "service/memory/memory_socket.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"

namespace pando {

// The handlers of pando.v1.DataPath. Owned by Server; used in the turn;
// holds no state.
class DataPathService {
 public:
  // All pointers outlive the service. `has_lanes` tells whether this server
  // opens lanes.
  DataPathService(CallPolicy* policy, PrefixCache* cache, SteppedCalls* stepped,
                  MemorySocket* memory, bool has_lanes)
      : policy_(policy),
        cache_(cache),
        stepped_(stepped),
        memory_(memory),
        has_lanes_(has_lanes) {}

  // Serves its methods over gRPC. REQUIRES: every service has called
  // AddMethodsTo(data_path).
  void Register(RpcServer& server, RpcMetrics& metrics,
                const DataPath& data_path);

  absl::Status OpenLane(const v1::OpenLaneRequest& request,
                        v1::OpenLaneResponse& response,
                        const WaitingCall& call);
  // Returns none between two steps, and while calls of the batch wait.
  std::optional<absl::Status> Batch(const v1::BatchRequest& request,
                                    v1::BatchResponse& response,
                                    WaitingCall& call);

 private:
  CallPolicy* const policy_;
  PrefixCache* const cache_;
  SteppedCalls* const stepped_;
  MemorySocket* const memory_;
  const bool has_lanes_;
  AsyncService<v1::DataPath> grpc_;
  const DataPath* data_path_ = nullptr;
  std::optional<BatchMetrics> batch_metrics_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_DATA_PATH_SERVICE_H_
