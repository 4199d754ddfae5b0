#ifndef PANDO_SERVICE_CALLS_METHOD_H_
#define PANDO_SERVICE_CALLS_METHOD_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "service/calls/call_rates.h"
#include "service/calls/waiting_call.h"
#include "service/security/permissions.h"

namespace pando {

// One method of the protocol: its handler, and what a caller needs to call it.
// The same for every transport that offers it. Immutable.
template <typename Request, typename Response>
struct Method {
  // Returns none when the call waits. Both messages live until it is answered.
  using Handler = std::function<std::optional<absl::Status>(
      const Request&, Response&, WaitingCall&)>;

  Method(std::string of_service, std::string its_name, Handler carry_out,
         Waiting may_wait)
      : service(std::move(of_service)),
        name(std::move(its_name)),
        handler(std::move(carry_out)),
        waiting(may_wait),
        permission(PermissionFor(service, name)),
        is_limited(CallRates::IsLimited(name)) {}

  const std::string service;  // "pando.v1.PrefixCache"
  const std::string name;
  const Handler handler;
  const Waiting waiting;
  const Permission permission;
  const bool is_limited;  // by the rates of calls
};

template <typename Request, typename Response>
using MethodPointer = std::shared_ptr<const Method<Request, Response>>;

// Makes a method from a handler whose calls may wait.
template <typename Request, typename Response>
MethodPointer<Request, Response> MakeWaitingMethod(
    const std::string& service, const std::string& name,
    typename Method<Request, Response>::Handler handler) {
  return std::make_shared<const Method<Request, Response>>(
      service, name, std::move(handler), Waiting::kAllowed);
}

// Makes a method from a handler that answers at once: absl::Status
// handler(const Request&, Response&), or with the call as a third argument.
template <typename Request, typename Response, typename Handler>
MethodPointer<Request, Response> MakeMethod(const std::string& service,
                                            const std::string& name,
                                            Handler handler) {
  return std::make_shared<const Method<Request, Response>>(
      service, name,
      [handler = std::move(handler)](
          const Request& in, Response& out,
          [[maybe_unused]] WaitingCall& call) -> std::optional<absl::Status> {
        if constexpr (requires { handler(in, out, call); }) {
          return handler(in, out, call);
        } else {
          return handler(in, out);
        }
      },
      Waiting::kNever);
}

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_METHOD_H_
