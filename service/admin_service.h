#ifndef PANDO_SERVICE_ADMIN_SERVICE_H_
#define PANDO_SERVICE_ADMIN_SERVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/prefix_cache.h"
#include "pando/v1/admin.grpc.pb.h"
#include "service/rpc/method_metrics.h"
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"

namespace pando {

// The handlers of pando.v1.Admin. Owned by Server; runs on the polling thread;
// holds no state.
class AdminService {
 public:
  // `cache` and `self_check` outlive the service.
  AdminService(PrefixCache* cache, SelfCheck* self_check, uint64_t epoch)
      : cache_(cache), self_check_(self_check), epoch_(epoch) {}

  void Register(RpcServer& server, RpcMetrics& metrics);

  absl::Status GetStats(const v1::GetStatsRequest& request,
                        v1::GetStatsResponse& response);
  absl::Status Flush(const v1::FlushRequest& request,
                     v1::FlushResponse& response);
  absl::Status CheckInvariants(const v1::CheckInvariantsRequest& request,
                               v1::CheckInvariantsResponse& response);

 private:
  PrefixCache* const cache_;
  SelfCheck* const self_check_;
  const uint64_t epoch_;
  v1::Admin::AsyncService grpc_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_ADMIN_SERVICE_H_
