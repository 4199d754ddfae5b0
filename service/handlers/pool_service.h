#ifndef PANDO_SERVICE_HANDLERS_POOL_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_POOL_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/prefix_cache.h"
#include "pando/v1/pool.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/handlers/stepped_calls.h"
#include "service/memory/memory_socket.h"
#include "service/memory/open_pool.h"
#include "service/memory/page_verifier.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"

namespace pando {

// The handlers of pando.v1.PagePool. Owned by Server; used in the turn. Its
// only state is the model digest of the first worker that stated one: the KV in
// the pool is of that model.
class PoolService {
 public:
  // All pointers outlive the service. `verifier` is null if no pages are
  // verified. `has_pool` is false if no worker may attach the pool. `open` is
  // null unless the pool takes its layout from the first worker.
  PoolService(PrefixCache* cache, SteppedCalls* stepped, MemorySocket* memory,
              PageVerifier* verifier, v1::PoolDescription description,
              uint64_t epoch, bool has_pool = true, OpenPool* open = nullptr)
      : cache_(cache),
        stepped_(stepped),
        memory_(memory),
        verifier_(verifier),
        description_(std::move(description)),
        epoch_(epoch),
        has_pool_(has_pool),
        open_(open) {}

  // Sets a function that is called once, with the model digest that TakeModel
  // or the first worker that states one has given.
  void set_on_model(std::function<void(const std::string&)> on_model) {
    on_model_ = std::move(on_model);
  }
  // Notes that the pool has KV of this model already, as if a worker had stated
  // it.
  void TakeModel(const std::string& digest);
  // Adds the methods of the data path that this service carries out.
  void AddMethodsTo(DataPath& data_path);
  // Serves all its methods over gRPC. REQUIRES: AddMethodsTo(data_path) was
  // called.
  void Register(RpcServer& server, RpcMetrics& metrics,
                const DataPath& data_path);

  absl::Status DescribePool(const v1::DescribePoolRequest& request,
                            v1::DescribePoolResponse& response);
  absl::Status AttachPool(const v1::AttachPoolRequest& request,
                          v1::AttachPoolResponse& response,
                          const WaitingCall& call);
  // AllocatePages and FreePages take steps, and return none between two steps.
  std::optional<absl::Status> AllocatePages(
      const v1::AllocatePagesRequest& request,
      v1::AllocatePagesResponse& response, WaitingCall& call);
  std::optional<absl::Status> FreePages(const v1::FreePagesRequest& request,
                                        v1::FreePagesResponse& response,
                                        WaitingCall& call);

 private:
  // Answers AttachPool while the pool is open: takes the layout of the first
  // worker.
  absl::Status AttachOpen(const v1::AttachPoolRequest& request,
                          v1::AttachPoolResponse& response);
  absl::Status CheckModelDigest(const std::string& digest) const;

  PrefixCache* const cache_;
  SteppedCalls* const stepped_;
  MemorySocket* const memory_;
  PageVerifier* const verifier_;
  const v1::PoolDescription description_;
  const uint64_t epoch_;
  const bool has_pool_;
  OpenPool* const open_;
  std::string model_digest_;
  std::function<void(const std::string&)> on_model_;  // may be null
  AsyncService<v1::PagePool> grpc_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_POOL_SERVICE_H_
