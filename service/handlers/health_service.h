#ifndef PANDO_SERVICE_HANDLERS_HEALTH_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_HEALTH_SERVICE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"

namespace pando {

class HealthWatch;

// The handlers of grpc.health.v1.Health. The server as a whole (""),
// "readiness" and each service by name are SERVING until the server drains.
// "liveness" stays SERVING while draining, because a probe must not kill a
// process that is finishing. Owned by Server; lives on the polling thread.
class HealthService {
 public:
  using Response = grpc::health::v1::HealthCheckResponse;

  // `server` and `is_draining` outlive the service.
  HealthService(RpcServer* server, const std::atomic<bool>* is_draining,
                const std::vector<std::string>& services);
  ~HealthService();

  // Serves its methods over gRPC. To be called before the server starts.
  void Register(RpcMetrics& metrics);
  // Tells every watcher the new status, once.
  void AnnounceDrain();

 private:
  friend class HealthWatch;

  // Returns SERVICE_UNKNOWN for a name that this server does not serve.
  Response::ServingStatus StatusOf(const std::string& service) const;
  absl::Status Check(const grpc::health::v1::HealthCheckRequest& request,
                     Response& response) const;
  // Waits for the next watcher.
  void Arm();
  void Remove(HealthWatch* watch);

  RpcServer* const server_;
  const std::atomic<bool>* const is_draining_;
  const absl::flat_hash_set<std::string> services_;
  AsyncService<grpc::health::v1::Health> grpc_;
  const ArmCall arm_watch_;
  bool drain_announced_ = false;
  absl::flat_hash_map<HealthWatch*, std::unique_ptr<HealthWatch>> watches_;
  size_t read_watches_ = 0;  // watches whose request was read
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_HEALTH_SERVICE_H_
