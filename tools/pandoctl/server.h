#ifndef PANDO_TOOLS_PANDOCTL_SERVER_H_
#define PANDO_TOOLS_PANDOCTL_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "clients/cpp/src/operator_calls.h"
#include "pando/v1/events.pb.h"
#include "tools/pandoctl/access.h"

namespace pando::ctl {

// The pandod that is asked, through the calls of the C++ client; errors are put
// into words for people. It touches gRPC only with the first call, because a
// replay forks before it uses any. For one thread. exit_code.h says what a
// failure's code means.
class Server {
 public:
  // `address` is "unix:/path", "/path" or "host:port". With TLS its certificate
  // is for `certified_name`, or for the host of the address when that is empty.
  Server(const std::string& address, absl::Duration timeout, Access access,
         const std::string& certified_name = "");
  ~Server();

  const std::string& address() const { return address_; }
  // The credentials that pandod is shown.
  const Access& access() const { return access_; }

  // Makes one call, for example Ask(v1::GetStatsRequest()).
  template <typename Request>
  auto Ask(const Request& request)
      -> decltype(std::declval<OperatorCalls>().Ask(request)) {
    ASSIGN_OR_RETURN(const OperatorCalls* const calls, Calls());
    auto answer = calls->Ask(request);
    if (!answer.ok()) return Explained(answer.status());
    return answer;
  }
  // Makes a call that lists, with a limit.
  template <typename Request>
  auto List(uint32_t limit) {
    Request request;
    request.set_limit(limit);
    return Ask(request);
  }

  // Calls `on_event` for each event until it returns false, but no longer than
  // `limit`.
  absl::Status WatchEvents(
      const std::function<bool(const v1::Event&)>& on_event,
      absl::Duration limit = absl::InfiniteDuration());
  // The name of the status of grpc.health.v1, "SERVING" for example.
  absl::StatusOr<std::string> Health(const std::string& service);

 private:
  absl::StatusOr<const OperatorCalls*> Calls();
  absl::Status Explained(const absl::Status& status) const;

  const std::string address_;
  const absl::Duration timeout_;
  const Access access_;
  // Null before the first call.
  std::unique_ptr<const OperatorCalls> calls_;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_SERVER_H_
