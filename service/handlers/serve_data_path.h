#ifndef PANDO_SERVICE_HANDLERS_SERVE_DATA_PATH_H_
#define PANDO_SERVICE_HANDLERS_SERVE_DATA_PATH_H_

#include <string_view>

#include "base/methods.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {

// Serves the methods of the data path that belong to the service `Generated`
// over gRPC. REQUIRES: `data_path` has these methods.
template <typename Generated>
void ServeDataPath(RpcServer& server, AsyncService<Generated>& grpc,
                   RpcMetrics& metrics, const DataPath& data_path) {
  constexpr std::string_view kService = Generated::service_full_name();
#define PANDO_METHOD(number, field, service, name, role, kind) \
  if constexpr (kService == "pando.v1." #service) {            \
    ServeMethod(server, grpc, metrics, data_path.field);       \
  }
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
}

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_SERVE_DATA_PATH_H_
