#ifndef PANDO_SERVICE_CALLS_METHOD_H_
#define PANDO_SERVICE_CALLS_METHOD_H_

#include <google/protobuf/descriptor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"
#include "service/calls/waiting_call.h"
#include "service/security/permissions.h"

namespace pando {

// Returns the name of the method of the generated service whose request type is
// `Request`. REQUIRES: there is such a method.
template <typename Generated, typename Request>
std::string NameOfMethod() {
  const auto* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          Generated::service_full_name());
  CHECK(service != nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* const method = service->method(i);
    if (method->input_type() == Request::descriptor()) return method->name();
  }
  CHECK(false);  // no method of this service takes such requests
}

// Returns whether a method needs a pool with a layout. An open pool, which has
// none yet, refuses such calls.
inline bool NeedsPages(const std::string& service, const std::string& name) {
  return service == "pando.v1.PrefixCache" || name == "AllocatePages" ||
         name == "FreePages" || name == "ExplainMatch" ||
         name == "SetEvictionPolicy";
}

// One method of the protocol: its handler, and the permission that a caller
// needs. All transports that offer the method share one object. Immutable.
template <typename Request, typename Response>
struct Method {
  // Returns the status of the answer, or none if the call waits. Both messages
  // live until the call is answered.
  using Handler = std::function<std::optional<absl::Status>(
      const Request&, Response&, WaitingCall&)>;

  Method(std::string of_service, std::string its_name, Handler carry_out)
      : service(std::move(of_service)),
        name(std::move(its_name)),
        handler(std::move(carry_out)),
        permission(PermissionFor(service, name)),
        needs_pages(NeedsPages(service, name)),
        is_limited(permission.kind != MethodKind::kGivesBack) {}

  const std::string service;  // "pando.v1.PrefixCache"
  const std::string name;
  const Handler handler;
  const Permission permission;
  const bool needs_pages;  // calls are refused while the pool is open
  const bool is_limited;   // its calls count for CallRates
};

template <typename Request, typename Response>
using MethodPointer = std::shared_ptr<const Method<Request, Response>>;

// Makes a method from a handler: absl::Status handler(const Request&,
// Response&), or with the call as a third argument; or one that returns
// std::optional<absl::Status>, whose calls may wait.
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
      });
}

// Makes a method of the generated service `Generated`, for example
// v1::PrefixCache, from a member function of `handlers`, which outlives the
// method. The member has one of these forms:
//   absl::Status Insert(const Request&, Response&)
//   absl::Status Insert(const Request&, Response&, const WaitingCall&)
//   std::optional<absl::Status> Insert(const Request&, Response&, WaitingCall&)
// Calls of the last form may wait. The method gets its name from its request
// type in the protocol, because no two methods share a message.
template <typename Generated, typename Handlers, typename Request,
          typename Response>
MethodPointer<Request, Response> MakeMethod(
    Handlers* handlers,
    absl::Status (Handlers::*handle)(const Request&, Response&)) {
  return MakeMethod<Request, Response>(Generated::service_full_name(),
                                       NameOfMethod<Generated, Request>(),
                                       [=](const Request& in, Response& out) {
                                         return (handlers->*handle)(in, out);
                                       });
}
template <typename Generated, typename Handlers, typename Request,
          typename Response>
MethodPointer<Request, Response> MakeMethod(
    Handlers* handlers,
    absl::Status (Handlers::*handle)(const Request&, Response&,
                                     const WaitingCall&)) {
  return MakeMethod<Request, Response>(
      Generated::service_full_name(), NameOfMethod<Generated, Request>(),
      [=](const Request& in, Response& out, const WaitingCall& call) {
        return (handlers->*handle)(in, out, call);
      });
}
template <typename Generated, typename Handlers, typename Request,
          typename Response>
MethodPointer<Request, Response> MakeMethod(
    Handlers* handlers,
    std::optional<absl::Status> (Handlers::*handle)(const Request&, Response&,
                                                    WaitingCall&)) {
  return MakeMethod<Request, Response>(
      Generated::service_full_name(), NameOfMethod<Generated, Request>(),
      [=](const Request& in, Response& out, WaitingCall& call) {
        return (handlers->*handle)(in, out, call);
      });
}

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_METHOD_H_
