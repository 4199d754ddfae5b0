#ifndef PANDO_TOOLS_PANDOCTL_SERVER_H_
#define PANDO_TOOLS_PANDOCTL_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/events.pb.h"
#include "pando/v1/pool.pb.h"
#include "pando/v1/prefix_cache.pb.h"
#include "tools/pandoctl/access.h"

namespace pando::ctl {

// The pandod that is asked: one connection, made by the first call, and its
// calls, each with a deadline. For one thread. exit_code.h says what a
// failure's code means.
class Server {
 public:
  // `address` is "unix:/path", "/path" or "host:port". With TLS its certificate
  // is for `certified_name`, or for the host of the address when that is empty.
  Server(const std::string& address, absl::Duration timeout, Access access,
         const std::string& certified_name = "");
  ~Server();

  const std::string& address() const { return address_; }

  absl::StatusOr<v1::GetStatsResponse> GetStats();
  absl::StatusOr<v1::DescribePoolResponse> DescribePool();
  absl::StatusOr<v1::ListNamespacesResponse> ListNamespaces(uint32_t limit);
  absl::StatusOr<v1::ListSessionsResponse> ListSessions(uint32_t limit);
  absl::StatusOr<v1::ListLocksResponse> ListLocks(
      const v1::ListLocksRequest& request);
  absl::StatusOr<v1::ReleaseLocksResponse> ReleaseLocks(uint32_t session);
  absl::StatusOr<v1::ListQuarantineResponse> ListQuarantine(uint32_t limit);
  absl::StatusOr<v1::FreeQuarantineResponse> FreeQuarantine(uint32_t session);
  absl::StatusOr<v1::MatchPrefixResponse> MatchPrefix(
      const v1::MatchPrefixRequest& request);
  absl::StatusOr<v1::ExplainMatchResponse> ExplainMatch(
      const v1::ExplainMatchRequest& request);
  absl::StatusOr<v1::EvictResponse> Evict(uint32_t pages);
  absl::StatusOr<v1::FlushResponse> Flush(const v1::FlushRequest& request);
  absl::StatusOr<v1::SetEvictionPolicyResponse> SetEvictionPolicy(
      const std::string& policy);
  absl::StatusOr<v1::CheckInvariantsResponse> CheckInvariants();
  absl::StatusOr<v1::DrainResponse> Drain(bool exit);

  // All messages of the dump as one.
  absl::StatusOr<v1::DumpTreeResponse> DumpTree(
      const v1::DumpTreeRequest& request);
  // Calls `on_event` for each event until it returns false, but no longer than
  // `limit`.
  absl::Status WatchEvents(
      const std::function<bool(const v1::Event&)>& on_event,
      absl::Duration limit = absl::InfiniteDuration());
  // The name of the status of grpc.health.v1, "SERVING" for example.
  absl::StatusOr<std::string> Health(const std::string& service);

 private:
  struct Stubs;

  Stubs& stubs();

  const std::string address_;
  const absl::Duration timeout_;
  const Access access_;
  const std::string certified_name_;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_SERVER_H_
